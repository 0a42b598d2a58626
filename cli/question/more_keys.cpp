#include "cli/question/sources.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/model/find_layer.hpp"

namespace attn::cli {
void check_saved_parts(const io::ArrayFile& file) {
    const nlohmann::json config = file.config();
    if (!config.is_object() || !config.contains("weights_shapes")) return;
    for (const auto& [name, shape] : config["weights_shapes"].items())
        for (const char* part : {"norm.", "_norm", "bias_k", "bias_v"})
            if (name.find(part) != std::string::npos && file.find(name) == nullptr)
                throw Error(ErrorKind::input, file.name,
                            "its layer has \"" + io::one_line(io::shortened(name)) +
                                "\", which the result does not hold; expected the weights "
                                "that it was computed with");
}

void check_can_save(const Request& request, const std::string& part) {
    if (!part.empty() && !request.save_weights.empty())
        throw setting_error(request, "save_weights",
                            "the layer has \"" + part +
                                "\", which is not written; expected a layer of projections alone");
}

void check_more_keys(const Request& request, const io::ArrayFile& file,
                     const io::ModelLayer& layer) {
    if (!io::has_more_keys(file, layer)) return;
    check_can_save(request, layer.full(layer.names->more_key));
    const Settings& s = request.settings;
    for (const auto& [setting, is_given] : {std::pair("past_key", request.has_file("past_key")),
                                            {"rope", s.rope.has_value()},
                                            {"alibi", s.alibi},
                                            {"window", !s.window.empty()}})
        if (is_given)
            throw setting_error(request, setting,
                                "conflicts with \"" + layer.full(layer.names->more_key) + "\" of " +
                                    file.name +
                                    ", a key without a position; expected no such flag");
}

void read_more_keys(const Request& request, const io::ArrayFile& file, const io::ModelLayer& layer,
                    Operands& operands) {
    if (!io::has_more_keys(file, layer)) return;
    const io::StoredArray &key = *file.find(layer.full(layer.names->more_key)),
                          &value = *file.find(layer.full(layer.names->more_value));
    const std::vector<std::size_t>& inputs = operands.inputs.shape();
    const std::size_t batch = inputs.size() == 3 ? inputs[0] : 1;
    const std::size_t heads = request.settings.heads.value_or(1);
    for (const auto& [array, past, name] : {std::tuple(&key, &operands.past_key, "past_key"),
                                            {&value, &operands.past_value, "past_value"}}) {
        if (past->dimension() != 0)
            throw setting_error(
                request, name,
                "conflicts with \"" + array->name + "\" of " + file.name + "; expected no cache");
        const std::size_t width = array->elements();
        if (width % heads != 0)
            throw Error(ErrorKind::input, array->place(),
                        "shape " + shape_text(array->shape) + "; expected a multiple of " +
                            std::to_string(heads) + " heads");
        Array<double> rows = Array<double>::from_shape({batch, heads, 1, width / heads});
        for (std::size_t b = 0; b < batch; ++b)
            io::read_elements<double>(
                *array, 0, width, [&](std::size_t before, std::span<const double> piece) {
                    std::copy(piece.begin(), piece.end(), rows.data() + b * width + before);
                });
        *past = std::move(rows);
    }
}

}  // namespace attn::cli
