#include "cli/question/notes.hpp"

#include <unistd.h>

#include <cstdio>
#include <vector>

#include "core/base/tensor.hpp"
#include "io/file/source.hpp"

namespace attn::cli {

std::string note_of_next_layer(const std::string& path) {
    const std::string file = path.empty() ? "-" : path;
    return "the context_vectors of " + file + " are the input, as for a next layer; " + file +
           ":inputs takes its inputs again, " + file + ":context_vectors these without a note";
}

std::string note_of_packed_heads(const Request& request, const Plan& plan) {
    const bool may_be_heads = plan.packed && plan.shown.batched && plan.heads > 1 &&
                              plan.batch == plan.heads && plan.kv_heads == plan.heads;
    if (!may_be_heads) return {};
    const auto shape = [&](std::size_t columns) {
        return shape_text(std::vector<std::size_t>{plan.batch, plan.q_len, columns});
    };
    const std::string heads = std::to_string(plan.heads);
    return location_of(request, "heads") + ": query " + shape(plan.heads * plan.d_k) +
           " is read as " + heads + " batch entries of " + heads + " heads with " +
           std::to_string(plan.d_k) +
           " columns each; without \"heads\" its first axis counts heads";
}

bool is_for_terminal(const std::string& note) {
    return !note.empty() && ::isatty(STDERR_FILENO) != 0;
}

void show_notes(const std::vector<std::string>& notes) {
    for (const std::string& note : notes)
        std::fprintf(stderr, "attn: note: %s\n", io::one_line(note).c_str());
}

}  // namespace attn::cli
