#include <algorithm>
#include <tuple>
#include <utility>

#include "cli/model/internal.hpp"
#include "cli/output/pictures.hpp"
#include "cli/request/field.hpp"
#include "io/file/path.hpp"
#include "io/read/result_view.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

template <class T>
void append_list(std::string& text, std::string_view key, const std::vector<T>& list) {
    if (!list.empty()) io::append_member(text, key, list);
}

std::string config_json(const Request& request, const std::string& path, const io::OpenModel& model,
                        const ModelQuestion& question) {
    const ModelInput& input = question.input;
    std::string text = "{";
    io::append_member(text, "mode", std::string_view("model"));
    if (!request.id.empty()) io::append_member(text, "id", io::JsonText{request.id});
    io::append_member(text, "model", path);
    io::append_member(text, "model_type", model.type());
    if (question.layers_as_asked.empty())
        io::append_member(text, "layers", question.layers);
    else
        io::append_member(text, "layers", question.layers_as_asked);
    append_list(text, "token_ids", input.ids);
    append_list(text, "token_type_ids", input.segments);
    append_list(text, "position_ids",
                std::vector<std::uint64_t>(input.positions.begin(), input.positions.end()));
    append_list(text, "attention_mask",
                std::vector<std::uint64_t>(input.valid.begin(), input.valid.end()));
    if (request.settings.segment_ids == nullptr)  // of a file
        append_list(text, "segment_ids", input.packed);
    append_list(text, "decoder_ids", question.decoder_ids);
    if (question.generate != 0) io::append_member(text, "generate", question.generate);
    // Some models and layers do not have all arrays, which an error reports if they are listed.
    const std::vector<std::string>& given = request.settings.emit;
    const bool is_all = request.has("emit") && std::ranges::count(given, "all") != 0;
    Request listed = request;
    listed.settings.emit = is_all ? std::vector<std::string>{"all"} : question.emit;
    append_settings(text, listed, [](const Option& option) {
        return (option.use & in_model) != 0 && (option.use & in_config) != 0;
    });
    return text += '}';
}

/// The names in the order of their first array.
std::vector<std::string> names_in_order(const std::vector<NamedArray>& arrays) {
    std::vector<std::string> names;
    for (const NamedArray& array : arrays)
        if (std::ranges::find(names, array.name) == names.end()) names.push_back(array.name);
    return names;
}

/// Adds the layers that have no such array.
void add_absent(std::vector<NamedArray>& arrays, const std::vector<std::size_t>& layers) {
    std::vector<NamedArray> absent;
    for (const std::string& name : names_in_order(arrays)) {
        const bool of_layers = std::ranges::any_of(
            arrays, [&](const NamedArray& a) { return a.name == name && a.layer.has_value(); });
        for (const std::size_t layer : of_layers ? layers : std::vector<std::size_t>())
            if (std::ranges::none_of(arrays, [&](const NamedArray& array) {
                    return array.name == name && array.layer == layer;
                })) {
                NamedArray row{name, Array<float>(), {}, {}};
                row.layer = layer;
                row.is_absent = true;
                absent.push_back(std::move(row));
            }
    }
    std::move(absent.begin(), absent.end(), std::back_inserter(arrays));
}

/// The tokens that were appended, for tables, which label them by their text.
NamedArray generated_array(const std::vector<std::uint64_t>& ids, bool has_texts) {
    Array<std::int64_t> values = Array<std::int64_t>::from_shape({ids.size()});
    std::ranges::transform(ids, values.begin(),
                           [](std::uint64_t id) { return static_cast<std::int64_t>(id); });
    return {"generated", std::move(values), {has_texts ? "new_tokens" : "count"}};
}

/// The stacks of an encoder-decoder model: the prefix of their arrays, and the member of the layer.
struct Part {
    std::string_view prefix, name;
};
constexpr Part model_parts[] = {
    {"encoder_", "encoder"}, {"decoder_", "decoder"}, {"cross_", "cross"}};

bool belongs(const std::string& array, std::string_view prefix) {
    if (!prefix.empty()) return array.starts_with(prefix);
    return std::ranges::none_of(model_parts,
                                [&](const Part& part) { return array.starts_with(part.prefix); });
}

/// The axes of the layer's arrays with this prefix.
std::string axes_json(const ModelResult& result, std::size_t layer, std::string_view prefix) {
    std::string text = "{";
    for (const NamedArray& array : result.arrays)
        if (array.layer == layer && belongs(array.name, prefix))
            io::append_member(text, array.name, array.axes);
    return text += '}';
}

/// The settings that a layer's weights do not show, named as in `config`.
/// Biases on the scores, ALiBi's among them, are operands of the plan.
std::string config_json(const LayerAttention& attention) {
    const Plan& plan = attention.plan;
    Request request;
    request.settings = plan.config;
    request.settings.heads = plan.heads;
    request.settings.kv_heads = plan.kv_heads;
    request.locations["rope"] = {};
    if (const RopeSettings& rope = attention.rope; rope.dims != 0) {
        request.settings.rope = rope.pairs;
        request.settings.rope_dims = rope.dims;
        if (rope.base != 0) request.settings.rope_base = rope.base;
    }
    std::string text = "{";
    io::append_member(text, "d_k", plan.heads * plan.d_k);
    io::append_member(text, "d_v", plan.heads * plan.d_v);
    append_settings(text, request, [](const Option& option) {
        return (option.use & as_saved) != 0 && std::string_view(option.key) != "alibi";
    });
    return text += '}';
}

std::string attention_json(const LayerAttention& attention, const std::string& axes) {
    std::string text = "{";
    io::append_member(text, "config", io::JsonText{config_json(attention)});
    io::append_member(text, "shapes", io::JsonText{shapes_json(attention.plan.shapes())});
    io::append_member(text, "layout", io::JsonText{layout_json(attention.plan, axes)});
    return text += '}';
}

/// The parts of one layer with this prefix; null if it has none.
std::string part_json(const ModelResult& result, std::size_t layer, std::string_view prefix) {
    const std::string axes = axes_json(result, layer, prefix);
    for (const LayerAttention& attention : result.attentions)
        if (attention.layer == layer && attention.part == prefix)
            return attention_json(attention, axes);
    if (axes == "{}" && !prefix.empty()) return {};
    return R"({"layout":{"axes":)" + axes + "}}";
}

/// The members of the head about each of `layers`: a JSON object with a member for each, named by
/// its number: the config, shapes and layout of its attention, as in a result of `multihead`. With
/// an encoder and a decoder these are in members "encoder", "decoder" and "cross". A layer without
/// a softmax has only the axes of its arrays.
std::string layers_json(const ModelResult& result, const std::vector<std::size_t>& layers) {
    const bool has_parts =
        std::ranges::any_of(result.arrays,
                            [](const NamedArray& array) { return !belongs(array.name, ""); }) ||
        std::ranges::any_of(result.attentions, [](const LayerAttention& attention) {
            return !attention.part.empty();
        });
    std::string text = "{";
    for (const std::size_t layer : layers) {
        std::string own;
        if (!has_parts) {
            own = part_json(result, layer, "");
        } else {
            own = "{";
            for (const Part& part : model_parts)
                if (const std::string object = part_json(result, layer, part.prefix);
                    !object.empty())
                    io::append_member(own, part.name, io::JsonText{object});
            own += '}';
        }
        io::append_member(text, std::to_string(layer), io::JsonText{own});
    }
    return text += '}';
}

}  // namespace

HeadMembers head_of_model(const Request& request, const std::string& path,
                          const io::OpenModel& model, const ModelQuestion& question,
                          const Labels& decoder_tokens) {
    HeadMembers head = start_of_head(request);
    if (request.bare) return head;
    head.emplace_back("mode", io::value_text(std::string_view("model")));
    if (!request.tokens.empty()) head.emplace_back("tokens", io::value_text(request.tokens));
    if (!decoder_tokens.empty())
        head.emplace_back("decoder_tokens", io::value_text(decoder_tokens));
    head.emplace_back("config", config_json(request, path, model, question));
    return head;
}

io::Report make_model_report(const Request& request, const std::string& path, HeadMembers head,
                             const ModelQuestion& question, const Labels& decoder_tokens,
                             ModelResult result, std::optional<std::string> generated_text,
                             ThreadPool& workers) {
    io::Report report;
    report.title_start = "model  ";
    report.title_end = "  " + io::last_part(path);
    report.head = std::move(head);
    report.head.emplace_back("layer_numbers", io::value_text(question.layers));
    if (!request.bare) report.head.emplace_back("layers", layers_json(result, question.layers));
    if (question.generate != 0)
        report.head.emplace_back("generated", io::value_text(result.generated));
    if (generated_text) report.head.emplace_back("generated_text", io::value_text(*generated_text));
    std::vector<NamedArray> arrays = std::move(result.arrays);
    const std::vector<std::string> names = names_in_order(arrays);
    if (request.format->json) add_absent(arrays, question.layers);
    const auto index = [&](const NamedArray& array) {
        return std::ranges::find(names, array.name) - names.begin();
    };
    // The output of a stack's last layer comes last, so that entries and layer_numbers correspond.
    const auto is_output = [&](const NamedArray& array) {
        return array.layer && !std::ranges::binary_search(question.layers, *array.layer);
    };
    std::ranges::stable_sort(arrays, [&](const NamedArray& a, const NamedArray& b) {
        return std::tuple(index(a), is_output(a), a.layer) <
               std::tuple(index(b), is_output(b), b.layer);
    });
    if (!request.format->json)
        for (NamedArray& array : arrays)
            if (array.layer) array.name = io::layer_name(array.name, *array.layer);
    std::vector<LayerMask> masks;
    masks.reserve(result.attentions.size());
    for (LayerAttention& attention : result.attentions)
        masks.push_back({attention.part, attention.layer, attention.plan.heads,
                         attention.plan.kv_len, std::move(attention.mask)});
    const std::vector<std::uint64_t>& heads = request.settings.head;
    report.masked_of =
        masked_in_layers(std::move(masks), question.layers, {heads.begin(), heads.end()});
    const bool has_decoder = !question.decoder_ids.empty();
    if (request.format->name == std::string_view("table") && !result.generated.empty()) {
        const bool has_texts = !(has_decoder ? decoder_tokens : request.tokens).empty();
        arrays.insert(arrays.begin(), generated_array(result.generated, has_texts));
    }
    report.arrays = std::move(arrays);
    const auto labels = [&](const Labels& pieces, std::vector<std::uint64_t> ids, bool goes_on) {
        if (!pieces.empty() || ids.empty() || request.format->one_array)
            return readable_pieces(pieces);
        if (goes_on) ids.insert(ids.end(), result.generated.begin(), result.generated.end());
        return ids_as_labels(ids);
    };
    report.query_labels = report.key_labels =
        labels(request.tokens, question.input.ids, !has_decoder);
    if (has_decoder) report.decoder_labels = labels(decoder_tokens, question.decoder_ids, true);
    report.layers = question.layers;
    report.heads.assign(heads.begin(), heads.end());
    report.workers = &workers;
    return report;
}

}  // namespace attn::cli
