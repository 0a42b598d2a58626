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
                    "the model is not an encoder-decoder model; expected --token-ids");
    }
    if (!list) {
        question.decoder_ids = {model.decoder()->start_id()};
        return;
    }
    for (const std::string& word : split_list(*list)) {
        std::uint64_t id = 0;
        const char* const end = word.data() + word.size();
        const auto [at, error] = std::from_chars(word.data(), end, id);
        if (error != std::errc() || at != end)
            throw Error(ErrorKind::usage, location_of(*args.find("decoder_ids")),
                        "found " + io::shortened(word) + "; expected token ids, as in 0,31,4");
        question.decoder_ids.push_back(id);
    }
}

void check_decoder_ids(const Args& args, const io::OpenModel& model, const ModelQuestion& question,
                       std::size_t vocabulary) {
    for (const std::uint64_t id : question.decoder_ids)
        if (id >= vocabulary)
            throw Error(ErrorKind::input,
                        args.has("decoder_ids") ? location_of(*args.find("decoder_ids"))
                                                : model.config().place(),
                        (args.has("decoder_ids") ? "" : "decoder_start_token_id ") +
                            std::to_string(id) +
                            " is not a row of the model's table; expected at most " +
                            std::to_string(vocabulary - 1));
}

}  // namespace attn::cli
