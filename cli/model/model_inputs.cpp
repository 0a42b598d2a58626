#include "cli/model/model_inputs.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "core/base/error.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {
namespace {

struct InputRow {
    const char* key;
    std::string_view flag;
    std::optional<RealArray> ModelInput::*field;
};

constexpr InputRow rows[] = {{"pixel_values", "--pixel-values", &ModelInput::pixel_values},
                             {"spatial_shapes", "--spatial-shapes", &ModelInput::spatial_shapes},
                             {"input_values", "--input-values", &ModelInput::input_values},
                             {"input_features", "--input-features", &ModelInput::input_features}};

}  // namespace

void read_input_arrays(const Args& args, Request& request, ModelInput& input) {
    io::ArrayRules rules;
    rules.dtype = Dtype::float64;
    rules.lowest_rank = 1;
    rules.highest_rank = 4;
    for (const InputRow& row : rows)
        if (const std::optional<std::string> path = args.text(row.key)) {
            request.locations[row.key] = Location(location_of(*args.find(row.key)));
            input.*row.field =
                io::read_reals(io::open_input_file(*path, nullptr, request.access), rules, nullptr);
        }
}

void check_input(const Args& args, const Request& request, std::span<const std::string_view> needed,
                 bool takes_ids, const ModelInput& input) {
    for (const InputRow& row : rows) {
        const bool is_needed = std::find(needed.begin(), needed.end(), row.key) != needed.end();
        if (is_needed && !args.has(row.key))
            throw Error(ErrorKind::usage, "attn model",
                        "the model needs " + std::string(row.flag) + "; expected its file");
        if (!is_needed && args.has(row.key))
            throw Error(ErrorKind::usage, location_of(*args.find(row.key)),
                        "the model does not take it; expected " +
                            std::string(takes_ids ? "--token-ids" : "other flags"));
    }
    if (takes_ids && input.ids.empty())
        throw Error(ErrorKind::usage, "attn model", "no input; expected --token-ids or --text");
    if (!takes_ids && !input.ids.empty())
        throw setting_error(request, "token_ids",
                            "the model does not take token ids; expected none");
}

}  // namespace attn::cli
