// What may not be what was meant; see notes.hpp.
#include "cli/request/notes.hpp"

#include <unistd.h>

#include <cstdio>
#include <vector>

#include "core/base/tensor.hpp"
#include "io/file/source.hpp"

namespace attn::cli {

void note_next_layer(Request& request, const std::string& path) {
    const std::string file = path.empty() ? "-" : path;
    request.notes.push_back(
        "the context_vectors of " + file + " are the input, as for a next layer; " + file +
        ":inputs takes its inputs again, " + file + ":context_vectors these without a note");
}

void note_on_terminal(Request& request, const std::string& note) {
    if (!note.empty() && ::isatty(STDERR_FILENO) != 0) request.notes.push_back(note);
}

void note_packed_heads(Request& request, const Plan& plan) {
    const bool may_be_heads = plan.packed && plan.shown.batched && plan.heads > 1 &&
                              plan.batch == plan.heads && plan.kv_heads == plan.heads;
    if (!may_be_heads) return;
    const auto shape = [&](std::size_t columns) {
        return shape_text(std::vector<std::size_t>{plan.batch, plan.q_len, columns});
    };
    const std::string heads = std::to_string(plan.heads);
    request.notes.push_back(place_of(request, "heads") + ": query " + shape(plan.heads * plan.d_k) +
                            " is read as " + heads + " batch entries of " + heads + " heads with " +
                            std::to_string(plan.d_k) +
                            " columns each; without \"heads\" its first "
                            "axis counts heads");
}

void show_notes(const Request& request) {
    for (const std::string& note : request.notes)
        std::fprintf(stderr, "attn: note: %s\n", io::one_line(note).c_str());
}

}  // namespace attn::cli
