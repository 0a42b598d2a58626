// What may not be what was meant; see notes.hpp.
#include "cli/request/notes.hpp"

#include <cstdio>

#include "io/file/source.hpp"

namespace attn::cli {

void note_next_layer(Request& request, const std::string& path) {
    const std::string file = path.empty() ? "-" : path;
    request.notes.push_back(
        "the context_vectors of " + file + " are the input, as for a next layer; " + file +
        ":inputs takes its inputs again, " + file + ":context_vectors these without a note");
}

void show_notes(const Request& request) {
    for (const std::string& note : request.notes)
        std::fprintf(stderr, "attn: note: %s\n", io::one_line(note).c_str());
}

}  // namespace attn::cli
