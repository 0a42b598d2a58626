
#include <algorithm>
#include <tuple>
#include <utility>

#include "cli/model/internal.hpp"
#include "cli/output/output.hpp"
#include "cli/output/pictures.hpp"
#include "cli/request/field.hpp"
#include "cli/request/request.hpp"
#include "io/file/path.hpp"
#include "io/read/result_view.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

/// The settings of the table of options that a model's result repeats.
void append_settings(std::string& text, Request request, const ModelQuestion& question) {
    // Some models and layers do not have all arrays, which an error reports if they are listed.
    const std::vector<std::string>& given = request.settings.emit;
    const bool is_all = request.has("emit") && std::count(given.begin(), given.end(), "all") != 0;
    request.settings.emit = is_all ? std::vector<std::string>{"all"} : question.emit;
    for (const Option& option : options()) {
        if ((option.use & in_model) == 0 || (option.use & in_config) == 0) continue;
        std::string value;
        append_value(value, option, request);
        if (!value.empty()) io::append_member(text, option.key, io::JsonText{value});
    }
}

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
    append_list(text, "decoder_ids", question.decoder_ids);
    if (question.generate != 0) io::append_member(text, "generate", question.generate);
    append_settings(text, request, question);
    return text += '}';
}

/// Places of names in order of their first array.
std::vector<std::string> names_in_order(const std::vector<NamedArray>& arrays) {
    std::vector<std::string> names;
    for (const NamedArray& array : arrays)
        if (std::find(names.begin(), names.end(), array.name) == names.end())
            names.push_back(array.name);
    return names;
}

/// Adds the layers that have no such array.
void add_absent(std::vector<NamedArray>& arrays, const std::vector<std::size_t>& layers) {
    std::vector<NamedArray> absent;
    for (const std::string& name : names_in_order(arrays)) {
        const bool of_layers = std::any_of(arrays.begin(), arrays.end(), [&](const NamedArray& a) {
            return a.name == name && a.layer.has_value();
        });
        for (const std::size_t layer : of_layers ? layers : std::vector<std::size_t>())
            if (std::none_of(arrays.begin(), arrays.end(), [&](const NamedArray& array) {
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

}  // namespace

std::vector<std::pair<std::string, std::string>> head_of_model(const Request& request,
                                                               const std::string& path,
                                                               const io::OpenModel& model,
                                                               const ModelQuestion& question,
                                                               const Labels& decoder_tokens) {
    std::vector<std::pair<std::string, std::string>> head;
    if (!request.bare) head.emplace_back("schema", io::value_text(schema_of_answer(request)));
    if (!request.id.empty()) head.emplace_back("id", request.id);
    if (!request.meta.empty()) head.emplace_back("meta", request.meta);
    if (request.bare) return head;
    head.emplace_back("mode", io::value_text(std::string_view("model")));
    if (!request.tokens.empty()) head.emplace_back("tokens", io::value_text(request.tokens));
    if (!decoder_tokens.empty())
        head.emplace_back("decoder_tokens", io::value_text(decoder_tokens));
    head.emplace_back("config", config_json(request, path, model, question));
    return head;
}

io::Report make_model_report(const Request& request, const std::string& path,
                             std::vector<std::pair<std::string, std::string>> head,
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
    const auto place = [&](const NamedArray& array) {
        return std::find(names.begin(), names.end(), array.name) - names.begin();
    };
    // The output of a stack's last layer comes last, so that entries and layer_numbers correspond.
    const auto is_output = [&](const NamedArray& array) {
        return array.layer &&
               !std::binary_search(question.layers.begin(), question.layers.end(), *array.layer);
    };
    std::stable_sort(arrays.begin(), arrays.end(), [&](const NamedArray& a, const NamedArray& b) {
        return std::tuple(place(a), is_output(a), a.layer) <
               std::tuple(place(b), is_output(b), b.layer);
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
    report.arrays = std::move(arrays);
    report.query_labels = report.key_labels = readable_pieces(request.tokens);
    if (!question.decoder_ids.empty()) report.decoder_labels = readable_pieces(decoder_tokens);
    report.layers = question.layers;
    report.heads.assign(heads.begin(), heads.end());
    report.workers = &workers;
    return report;
}

}  // namespace attn::cli
