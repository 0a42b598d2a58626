// The layers and arrays that a request names.

#include <algorithm>
#include <set>

#include "cli/model/internal.hpp"
#include "cli/request/field.hpp"
#include "core/operator/arrays.hpp"
#include "io/file/source.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

constexpr ModelArray array_rows[] = {
    {"hidden_states", true, true, "the input of each block, and the output of the last"},
    {"recurrent_state", true, true, "the state after the last token, for recurrent layers"},
    {"cross_attention_weights", true, true, "for decoders: weights of the encoder's tokens"},
    {"last_hidden_state", false, true, "after the final norm"},
    {"logits", false, false, "logits of the last token, one per entry of the vocabulary"},
    {"next_tokens", false, false, "the ten most probable next tokens, with their probabilities"},
    {"next_token_probabilities", false, false, "the probabilities of next_tokens"},
};

bool is_of_attention(const ArrayRow& row) {
    constexpr std::string_view kept[] = {"queries",         "keys",         "values",
                                         "context_vectors", "head_outputs", "attention_weights"};
    return row.from != From::trace && !row.is_statistic() &&
           (row.needs & ~unsigned{needs::softmax}) == 0 &&
           (row.needs != 0 || std::ranges::count(kept, row.name) != 0);
}

/// `word` is a number of the list that is not one of a layer.
[[noreturn]] void fail_layers(std::string_view word, std::size_t count) {
    throw SettingError(ErrorKind::usage, "layers",
                       std::string(word.empty() ? "a number is missing, and " : "") +
                           "the model has " + std::to_string(count) +
                           " layers; expected all, or numbers from -" + std::to_string(count) +
                           " to " + std::to_string(count - 1) + " as in 0,5,-1");
}

}  // namespace

std::span<const ModelArray> model_arrays() {
    return array_rows;
}

std::vector<std::size_t> layers_of_stack(const std::string& list, std::size_t count,
                                         std::size_t deepest) {
    std::set<std::size_t> layers;
    for (std::size_t layer = 0; layer < count && list == "all"; ++layer) layers.insert(layer);
    for (const std::string& word : list == "all" ? std::vector<std::string>() : split_list(list)) {
        const auto number = io::number_of_text<std::int64_t>(word);
        const auto all = static_cast<std::int64_t>(deepest), own = static_cast<std::int64_t>(count);
        if (!number || *number >= all || *number < -all) fail_layers(word, deepest);
        if (*number < own && *number >= -own)
            layers.insert(static_cast<std::size_t>(*number < 0 ? *number + own : *number));
    }
    return {layers.begin(), layers.end()};
}

std::vector<std::size_t> layers_named(const std::string& list, std::size_t count) {
    std::vector<std::size_t> layers = layers_of_stack(list, count, count);
    if (layers.empty()) fail_layers(list, count);
    return layers;
}

std::vector<std::string> arrays_of_stacks() {
    std::vector<std::string> names{"encoder_last_hidden_state"};
    for (const std::string prefix : {"encoder_", "decoder_"}) {
        for (const ModelArray& row : array_rows)
            if (row.of_layers && !row.name.starts_with("cross_"))
                names.push_back(prefix + std::string(row.name));
        for (const ArrayRow& row : emitted_arrays)
            if (is_of_attention(row)) names.push_back(prefix + std::string(row.name));
    }
    return names;
}

bool is_model_array(const std::string& name) {
    return find_row(array_rows, &ModelArray::name, std::string_view(name)) != nullptr ||
           std::ranges::count(arrays_of_stacks(), name) != 0;
}

std::vector<std::string> names_of_stack(const std::vector<std::string>& names,
                                        std::string_view prefix) {
    std::vector<std::string> own;
    for (const std::string& name : names)
        if (name.starts_with(prefix))
            own.push_back(name.substr(prefix.size()));
        else if (!name.starts_with("encoder_") && !name.starts_with("decoder_"))
            own.push_back(name);
    return own;
}

std::vector<std::string> arrays_named(const Request& request, bool has_decoder) {
    std::vector<std::string> all, defaults;
    for (const ModelArray& row : array_rows) {
        all.emplace_back(row.name);
        if (row.is_default) defaults.emplace_back(row.name);
    }
    defaults.emplace_back("attention_weights");
    for (const ArrayRow& row : emitted_arrays)
        if (is_of_attention(row)) all.emplace_back(row.name);
    const std::vector<std::string> of_stack =
        has_decoder ? arrays_of_stacks() : std::vector<std::string>();
    if (!request.has("emit")) return defaults;
    std::vector<std::string> named;
    bool is_all = false;
    for (const std::string& name : request.settings.emit) {
        is_all |= name == "all";
        if (name == "all") continue;
        if (std::ranges::count(all, name) == 0 && std::ranges::count(of_stack, name) == 0) {
            if (name.starts_with("generated"))
                throw setting_error(request, "emit",
                                    name +
                                        " is not an array; expected --generate N in its place, "
                                        "which writes generated and, with a tokenizer, "
                                        "generated_text");
            throw setting_error(
                request, "emit",
                unknown_array(name, all) +
                    (has_decoder ? "; arrays of one stack begin with encoder_ or decoder_" : ""));
        }
        if (std::ranges::count(named, name) == 0) named.push_back(name);
    }
    return is_all ? all : named;
}

}  // namespace attn::cli
