#include "cli/inspect/inspect.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "cli/args/args.hpp"
#include "cli/question/layer_source.hpp"
#include "cli/question/question.hpp"
#include "cli/request/errors.hpp"
#include "cli/request/request.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/model/find_layer.hpp"
#include "io/read/input_formats.hpp"
#include "io/read/result_view.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {
namespace {

using nlohmann::ordered_json;

/// An array of any rank that a file may have.
constexpr io::ArrayRules anything = io::ArrayRules::anything(32);

/// An array in text, of which it takes `bytes`.
io::StoredArray array_of_text(const std::string& name, const io::NumberArray& read,
                              std::size_t bytes) {
    io::StoredArray array;
    array.name = name;
    array.shape = read.shape();
    array.type_name = read.boolean ? "boolean" : "number";
    array.size = bytes;
    return array;
}

/// "result" of "attn.result/1"; empty for a schema of another program.
std::string kind_of_schema(const nlohmann::json& schema) {
    for (std::string_view name : schemas::all)
        if (schema == name) return std::string(name.substr(5, name.find('/') - 5));
    return {};
}

bool is_request_key(const std::string& key) {
    static constexpr std::array<std::string_view, 2> other_keys{"mode", "inputs"};
    const Option* option = find_option(key);
    return std::ranges::find(other_keys, key) != other_keys.end() ||
           (option != nullptr && (option->use & as_key) != 0);
}

/// A list of numbers that is a setting: window, kv_lengths, ...
bool is_list_setting(const std::string& key) {
    const Option* option = find_option(key);
    return option != nullptr && option->field.kind != FieldKind::operand;
}

std::string kind_of_object(const io::JsonDocument& document) {
    const io::JsonMember* const schema = document.find("schema");
    if (schema != nullptr) {
        std::string kind = kind_of_schema(document.read_value(*schema));
        if (kind.empty())
            throw Error(ErrorKind::input, document.location(*schema), "unknown schema; expected \"",
                        schemas::result, "\" or another of attn's");
        return kind;
    }
    if (document.find("error") != nullptr) return "error";
    if (document.find("model_type") != nullptr) return "config";
    for (const io::JsonMember& member : document.members())
        if (is_request_key(member.key)) return "request";
    return "arrays";
}

/// A value of metadata; of a long list, such as a vocabulary, its length and its first elements.
ordered_json abbreviated(const nlohmann::json& value) {
    constexpr std::size_t longest = 24, first = 8;
    if (!value.is_array()) return value;
    ordered_json list = ordered_json::array();
    for (std::size_t i = 0; i < (value.size() > longest ? first : value.size()); ++i)
        list.push_back(abbreviated(value[i]));
    if (value.size() <= longest) return list;
    return {{"length", value.size()}, {"first", std::move(list)}};
}

/// null if a request cannot have it.
nlohmann::json id_in(const io::JsonDocument& document) {
    const io::JsonMember* const member = document.find("id");
    if (member == nullptr || document.holds_array(*member) || document.holds_object(*member))
        return {};
    nlohmann::json id = document.read_value(*member);
    return id.is_string() || id.is_number_integer() ? id : nlohmann::json();
}

class Inspector {
public:
    explicit Inspector(const InspectRequest& request) : request_(request) {}

    ordered_json inspect() {
        const std::string whole = weights_path();
        const io::DataPath path = io::split_data_path(whole);
        const io::InputFile file =
            io::open_input_file(whole, nullptr,
                                {.regular_only = whole != request_.path,
                                 .expected = "arrays, a request, a result or a model"});
        found_ = {
            {"schema", schemas::inspection}, {"file", file.name}, {"format", file.format->name}};
        for (const char* key : {"kind", "members", "model", "lines", "header", "tokens",
                                "context_tokens", "decoder_tokens", "arrays", "problem", "command"})
            found_[key] = nullptr;
        found_["arrays"] = ordered_json::array();
        if (file.arrays)
            take_stored(*file.arrays);
        else if (file.holds_object())
            take_object(file);
        else if (file.format == io::ndjson_input &&
                 io::after_blanks(file.source->text).starts_with('{'))
            take_lines(*file.source);
        else
            take_one(file);
        if (may_be_model()) {
            io::ArrayFile all{file.name, arrays_, metadata_};
            all.index_names();
            // Piped input cannot be opened again.
            const bool is_lasting = path.file != "-" && io::file_id(path.file);
            inspect_model(found_, all, is_lasting ? path.file : "", path.array, request_.layer);
        }
        if (found_["model"].is_null() && request_.layer)
            throw Error(ErrorKind::usage, "--layer", file.name,
                        " holds no layers of a model; expected no such flag");
        if (found_["model"].is_null() && !file.array.empty()) pick(file);
        found_["members"] = std::move(members_);
        for (const io::StoredArray& array : arrays_) {
            const std::optional<std::uint64_t> elements = io::elements_of(array.shape);
            found_["arrays"].push_back({{"name", array.name},
                                        {"shape", array.shape},
                                        {"dtype", array.type_name},
                                        {"elements", elements ? ordered_json(*elements) : nullptr},
                                        {"bytes", array.size}});
        }
        show_notes(notes_);
        ordered_json inspection;
        for (const auto& [key, value] : found_.items())
            if (!value.empty() || key == "arrays") inspection[key] = std::move(value);
        return inspection;
    }

private:
    /// A model's folder or config leads to its weights.
    std::string weights_path() const {
        const std::string& path = request_.path;
        if (io::last_part(path) != "config.json" || io::is_folder(path))
            return io::weights_file(path);
        const std::string file = io::file_of_model(io::path_beside(path, ""), io::weights_names);
        return file.empty() ? path : file;
    }

    /// A JSON file of weights may have members that a request may have too, such as a mask.
    bool may_be_model() const {
        const auto holds = [&](std::string_view name) {
            return members_.contains(name) || std::ranges::any_of(arrays_, [&](const auto& array) {
                       return array.name.starts_with(name);
                   });
        };
        if (found_["kind"] == "request")
            return !holds("mode") && !holds("inputs") && !holds("weights.");
        return found_["kind"] == "arrays" || found_["kind"] == "weights";
    }

    void take_stored(const io::ArrayFile& file) {
        arrays_ = file.arrays;
        metadata_ = file.metadata;
        std::string kind;
        if (metadata_ != nullptr) {
            if (metadata_->contains("schema")) kind = kind_of_schema((*metadata_)["schema"]);
            for (const auto& [key, value] : metadata_->items()) take_member(key, value);
        }
        if (file.gguf_metadata != nullptr)
            for (const auto& [key, value] : file.gguf_metadata->items())
                members_.get_ref<ordered_json::object_t&>().emplace_back(key, abbreviated(value));
        const bool is_npy = arrays_.size() == 1 && arrays_[0].name.empty();
        found_["kind"] = !kind.empty() ? kind : is_npy ? "array" : "arrays";
    }

    void take_member(const std::string& key, const nlohmann::json& value) {
        const bool labels = io::is_label_key(key) && value.is_array() &&
                            std::ranges::all_of(value, [](const auto& t) { return t.is_string(); });
        if (labels)
            found_[key] = value;
        else if (key != "schema")
            members_.get_ref<ordered_json::object_t&>().emplace_back(key, value);  // keys differ
    }

    void take_object(const io::InputFile& file) {
        const io::JsonDocument& document = *file.document;
        const std::string kind = kind_of_object(document);
        found_["kind"] = kind;
        static constexpr std::array<std::string_view, 4> with_arrays{"arrays", "request", "result",
                                                                     "weights"};
        const bool holds_arrays = std::ranges::find(with_arrays, kind) != with_arrays.end();
        const bool may_be_model = kind == "result" || kind == "arrays";  // --bare
        const std::vector<std::size_t> layers =
            may_be_model ? io::layer_numbers_of(document) : std::vector<std::size_t>();
        for (const io::JsonMember& member : document.members()) {
            const bool is_weights = member.key == "weights" && document.holds_object(member);
            if (is_weights)
                take_weights(io::JsonDocument(*file.source, member), member.key);
            else if (holds_arrays && document.holds_array(member) && !is_list_setting(member.key) &&
                     member.key != io::passed_on_key && member.key != io::layer_numbers_key)
                take_arrays(document, member, layers);
            else
                take_member(member.key, document.shown_value(member));
        }
        if (kind == "weights" || kind == "arrays") take_metadata(document);
        if (kind == "request") check_request(file);
    }

    void take_metadata(const io::JsonDocument& document) {
        nlohmann::json metadata = nlohmann::json::object();
        for (const char* key : {"schema", "config"})
            if (const io::JsonMember* member = document.find(key))
                metadata[key] = document.read_value(*member);
        metadata_ = std::make_shared<const nlohmann::json>(std::move(metadata));
    }

    void take_weights(const io::JsonDocument& weights, const std::string& key) {
        for (const io::JsonMember& member : weights.members())
            if (weights.holds_array(member)) take_array(weights, member, key + "." + member.key);
    }

    /// An array, or those of the layers of a model.
    void take_arrays(const io::JsonDocument& document, const io::JsonMember& member,
                     const std::vector<std::size_t>& layers) {
        const std::vector<io::LayerMember> entries = io::layers_in(document, member, layers);
        for (const io::LayerMember& entry : entries)
            if (!entry.is_absent)
                take_array(document, entry.value, io::layer_name(member.key, entry.layer));
        if (entries.empty()) take_array(document, member, member.key);
    }

    void take_array(const io::JsonDocument& document, const io::JsonMember& member,
                    const std::string& name) {
        arrays_.push_back(array_of_text(name, document.read_array(member, anything, &workers_),
                                        member.end - member.begin));
    }

    /// The error in its keys. A record's mode is required for that.
    void check_request(const io::InputFile& file) {
        if (file.document->find("mode") == nullptr) return;
        Request request;
        request.has_mode = false;
        request.of_batch = true;
        request.document = file.source;
        try {
            apply_document(request, *file.document, file.location, is_operand_of);
        } catch (const Error&) {
            const ErrorReport failure = current_error(true);
            found_["problem"] = failure.location + ": " + failure.message;
        }
    }

    static bool is_operand_of(std::string_view key, Mode mode) {
        const Option* option = find_option(key);
        return option != nullptr && option->field.kind == FieldKind::operand &&
               (option->modes & in(mode)) != 0;
    }

    /// One array; for CSV with its header and labels.
    void take_one(const io::InputFile& file) {
        found_["kind"] = "array";
        io::MatrixLabels labels;
        const io::NumberArray read =
            io::read_one_array(file, anything, &workers_, request_.csv, &labels);
        arrays_.push_back(array_of_text("", read, file.source->text.size()));
        add_note(std::move(labels.note), labels.is_guess, notes_);
        found_["header"] = std::move(labels.header);
        found_["tokens"] = std::move(labels.rows);
    }

    /// Requests or results, one per line.
    void take_lines(const io::Source& source) {
        found_["kind"] = "lines";
        std::map<std::string, std::size_t> kinds;
        std::size_t count = 0;
        nlohmann::json first_id, last_id;
        io::for_each_line(source, [&](const io::Source& line) {
            const io::JsonDocument document(line);
            if (document.is_array())
                throw Error(ErrorKind::input, io::line_location(source.name, line.first_line),
                            "a list among objects; expected one object a line");
            ++kinds[kind_of_object(document)];
            last_id = id_in(document);
            if (count++ == 0) first_id = last_id;
        });
        found_["lines"] = {
            {"count", count}, {"kinds", kinds}, {"first_id", first_id}, {"last_id", last_id}};
    }

    /// The array named in FILE:NAME.
    void pick(const io::InputFile& file) {
        const std::string list = io::list_of(arrays_);
        std::erase_if(arrays_,
                      [&](const io::StoredArray& array) { return array.name != file.array; });
        if (arrays_.empty())
            throw Error(ErrorKind::input, file.name, "has no array \"",
                        io::one_line(io::shortened(file.array)), "\"; there are ", list);
        found_["kind"] = "array";
    }

    const InspectRequest& request_;
    /// With all members that it may have, in order; those that stay null or empty are left out.
    ordered_json found_;
    std::vector<io::StoredArray> arrays_;  ///< for text, with the bytes that it takes
    std::vector<std::string> notes_;
    ordered_json members_ = ordered_json::object();
    std::shared_ptr<const nlohmann::json> metadata_;
    ThreadPool workers_;
};

}  // namespace

ordered_json inspect(const InspectRequest& request) {
    return Inspector(request).inspect();
}

}  // namespace attn::cli
