#include "cli/model/decoder_input.hpp"

#include <charconv>
#include <optional>
#include <string>

#include "cli/request/field.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"

namespace attn::cli {

void read_decoder_ids(const Args& args, const io::OpenModel& model, ModelQuestion& question) {
    const std::optional<std::string> list = args.text("decoder_ids");
    if (model.decoder() == nullptr) {
        if (!list) return;
        throw Error(ErrorKind::usage, location_of(*args.find("decoder_ids")),
                    "the model has no decoder next to an encoder; expected --token-ids");
    }
    if (!list) {
        question.start_id = model.decoder()->start_id();
        question.decoder_ids = {*question.start_id};
        return;
    }
    for (const std::string& word : split_list(*list)) {
        std::uint64_t id = 0;
        const char* const end = word.data() + word.size();
        const auto [at, error] = std::from_chars(word.data(), end, id);
        if (error != std::errc() || at != end)
            throw Error(ErrorKind::usage, location_of(*args.find("decoder_ids")),
                        "found " + io::shortened(word) + "; expected ids of tokens, as in 0,31,4");
        question.decoder_ids.push_back(id);
    }
}

}  // namespace attn::cli
