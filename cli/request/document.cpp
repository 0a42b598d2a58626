#include "cli/request/request_builder.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "cli/args/names.hpp"
#include "io/file/path.hpp"
#include "io/read/result_view.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

class DocumentReader {
public:
    DocumentReader(Request& request, const io::JsonDocument& document, const std::string& location,
                   IsOperand is_operand)
        : request_(request), document_(document), location_(location), is_operand_(is_operand) {}

    std::vector<std::string> read() {
        if (const io::JsonMember* schema = document_.find("schema"))
            throw Error(ErrorKind::input, document_.location(*schema), about_schema(*schema));
        if (document_.find("error") != nullptr)
            throw Error(ErrorKind::input, location_,
                        "a record that failed in an earlier batch; expected a request or a result");
        // First, so that no other key is rejected because of the wrong mode.
        if (const io::JsonMember* mode = document_.find("mode")) take_mode(*mode);
        check_mode();
        for (const io::JsonMember& member : document_.members())
            if (member.key != "mode" && !is_ignored(request_, member.key)) take_member(member);
        return std::move(results_);
    }

private:
    std::string about_schema(const io::JsonMember& schema) const {
        if (document_.read_value(schema) == schemas::index)
            return "a line of an index, whose arrays are in another file; expected a request, a "
                   "result, or that file";
        return "unknown schema; expected \"" + std::string(schemas::result) + "\"";
    }

    /// The key that a member means, under any name.
    std::string key_of(const io::JsonMember& member) {
        const std::string& name = member.key;
        if (find_option(name) != nullptr || is_own(name)) return name;
        const std::string_view text = document_.text(member);
        const auto axes = std::size_t(
            std::ranges::count(text.substr(0, text.find_first_not_of("[ \t\r\n")), '['));
        std::string key = key_meant(name, request_.settings.mode, axes);
        if (key.empty()) return name;
        const auto take = [&](const io::JsonMember& of) {
            if (document_.text(of) != "null")
                take_name(request_, key, of.key, document_.location(member));
        };
        if (const io::JsonMember* const own = document_.find(key)) take(*own);
        take(member);
        return key;
    }

    void take_member(const io::JsonMember& member) {
        const std::string key = key_of(member);
        const bool is_operand = is_operand_(key, request_.settings.mode);
        const bool is_weights = key == "weights" && document_.holds_object(member);
        if (request_.no_files) refuse_file(key, member);
        if (const OwnMember* const own = find_row(own_members, &OwnMember::key, key)) {
            (this->*own->take)(member);
        } else if (is_weights || (is_operand && holds_elements(document_, member))) {
            if (request_.keeps_flag(key)) return;
            request_.operand_files.erase(key);
            request_.locations[key] = Location(member.begin);
        } else if (!request_.of_batch && document_.holds_array(member) && names_result(key)) {
            results_.push_back(key);
        } else {
            apply_key(request_, key, document_.read_value(member),
                      Location(member.key_offset, document_.text(member)),
                      is_unread(member) ? unread_arrays() : "");
        }
    }

    static bool is_own(std::string_view name) {
        return find_row(own_members, &OwnMember::key, name) != nullptr;
    }

    void take_id(const io::JsonMember& member) { apply_id(request_, document_, member); }
    void take_meta(const io::JsonMember& member) { request_.meta = document_.copied(member); }
    void take_tokens(const io::JsonMember& member) {
        const json tokens = document_.read_value(member);
        if (!tokens.is_null() && !request_.keeps_flag("tokens"))
            apply_value(request_, "tokens", tokens, document_.location(member));
    }

    /// Whether it is an array under a name that means nothing here.
    bool is_unread(const io::JsonMember& member) const {
        const std::string& name = member.key;
        return !is_own(name) && document_.holds_array(member) && !is_ignored(request_, name) &&
               key_meant(name, request_.settings.mode, 1).empty() &&
               (request_.of_batch || !names_result(name));
    }

    std::string unread_arrays() const {
        std::string names;
        for (const io::JsonMember& member : document_.members())
            if (is_unread(member)) names += (names.empty() ? "" : ",") + member.key;
        return io::shortened(names, io::longest_list);
    }

    void check_mode() {
        if (!request_.has_mode)
            throw Error(ErrorKind::usage, location_,
                        "no mode; expected \"mode\" in the request, or ",
                        request_.of_batch ? "--mode" : "a mode before INPUT");
        apply_deferred(request_);
        check_defaults(request_);
    }

    void take_mode(const io::JsonMember& member) {
        const json value = document_.read_value(member);
        if (request_.of_batch || !request_.has_mode) {
            const ModeRow* known = mode_named(value.is_string() ? value.get<std::string>() : "");
            if (known == nullptr)
                throw Error(ErrorKind::usage, document_.location(member),
                            "unknown mode " + io::shortened(value.dump()) + "; expected " +
                                (request_.of_batch && value != "model" ? "model, " : "") +
                                listed_modes() +
                                (value.is_string() ? mode_meant(value.get<std::string>()) : ""));
            request_.settings.mode = known->mode;
            request_.has_mode = true;
            return;
        }
        const std::string mode(row_of(request_.settings.mode).name);
        if (value != mode)
            throw Error(ErrorKind::usage, document_.location(member), "the request has mode ",
                        value.dump(), "; expected \"", mode, "\", the mode of the command");
    }

    /// The path is not accessed, not even to check that it exists.
    void refuse_file(const std::string& key, const io::JsonMember& member) const {
        if (!document_.text(member).starts_with('"')) return;
        const Option* const option = find_option(key);
        if (option == nullptr
                ? key == "inputs"
                : is_file_name(*option, document_.read_value(member).get<std::string>()))
            throw Error(ErrorKind::usage, document_.location(member),
                        "\"" + member.key + "\" names a file, and --no-files is on; expected none");
    }

    /// Stores a matrix, or the path of one.
    void store_inputs(const io::JsonMember& member) {
        request_.locations["inputs"] = Location(member.begin);
        if (document_.holds_array(member)) return;
        const json value = document_.read_value(member);
        const std::string path = value.is_string() ? value.get<std::string>() : "";
        if (path.empty() || path.find('\0') != std::string::npos)
            throw Error(
                ErrorKind::input, document_.location(member),
                "\"inputs\" is neither an array nor a path; expected a matrix [[...], ...]");
        request_.operand_files["inputs"] = path;
    }

    /// A member that is read in a way of its own.
    struct OwnMember {
        std::string_view key;
        void (DocumentReader::*take)(const io::JsonMember& member);
    };
    static constexpr OwnMember own_members[] = {{"inputs", &DocumentReader::store_inputs},
                                                {"id", &DocumentReader::take_id},
                                                {io::passed_on_key, &DocumentReader::take_meta},
                                                {"tokens", &DocumentReader::take_tokens}};

    Request& request_;
    const io::JsonDocument& document_;
    const std::string& location_;
    IsOperand is_operand_;
    std::vector<std::string> results_;
};

}  // namespace

std::vector<std::string> apply_document(Request& request, const io::JsonDocument& document,
                                        const std::string& location, IsOperand is_operand) {
    return DocumentReader(request, document, location, is_operand).read();
}

bool holds_elements(const io::JsonDocument& document, const io::JsonMember& member) {
    if (!document.holds_array(member)) return false;
    const Option* const option = find_option(member.key);
    if (option == nullptr || option->field.set == nullptr) return true;
    return io::after_blanks(document.text(member).substr(1)).starts_with('[');
}

void apply_id(Request& request, const io::JsonDocument& document, const io::JsonMember& member) {
    std::string id = id_in(document, member);
    if (!id.empty()) request.id = std::move(id);
}

std::string id_in(const io::JsonDocument& document, const io::JsonMember& member) {
    if (document.is_plain(member)) return std::string(document.text(member));
    const json id = document.read_value(member);
    if (id.is_null()) return {};
    if (!id.is_string() && !id.is_number_integer())
        throw Error(
            ErrorKind::input, document.location(member),
            "an id that cannot be given back as it is; expected a string or a 64-bit integer");
    return io::json_text(id);
}

namespace {

/// With --bare it has no schema, but still the number of its record.
bool is_line_of_index(const io::InputFile& line) {
    if (!line.holds_object() || line.document->find("error") != nullptr) return false;
    const auto has = [&](const char* key) { return line.document->find(key) != nullptr; };
    if (has("schema")) return io::schema_of(line) == schemas::index;
    return has("arrays") && has("record") && has("file");
}

}  // namespace

io::InputFile IndexedResults::result_of(io::InputFile line) {
    if (!is_line_of_index(line)) return line;
    const json part_name = io::head_member(line, "file");
    const io::JsonMember* const arrays = line.document->find("arrays");
    const json listed = arrays == nullptr ? json() : line.document->read_value(*arrays);
    if (!part_name.is_string() || !listed.is_array())
        throw Error(ErrorKind::input, line.location,
                    "no file and arrays; expected a line of the index of attn batch --out-dir");
    const std::string path = io::path_beside(line.name, part_name.get<std::string>());
    const std::shared_ptr<const io::InputFile> opened = parts_.get(path, [&] {
        return std::make_shared<const io::InputFile>(
            io::open_input_file(path, nullptr, {.regular_only = true}));
    });
    const io::InputFile& part = *opened;
    io::InputFile result;
    result.name = part.name;
    result.location = std::move(line.location);
    result.format = part.format;
    result.arrays.emplace();
    if (part.arrays) {
        result.arrays->name = part.arrays->name;
        result.arrays->metadata = part.arrays->metadata;
    }
    for (const json& array : listed) {
        const auto text = [&](const char* key) {
            const json value = io::member(array, key);
            return value.is_string() ? value.get<std::string>() : std::string();
        };
        const std::string entry = text("entry");
        const io::StoredArray* stored = part.arrays ? part.arrays->find(entry) : nullptr;
        if (part.arrays && !part.format->named) stored = &part.arrays->arrays.front();
        if (stored == nullptr)
            throw Error(ErrorKind::input, result.location,
                        io::shortened(part.name) + " has no array " + io::shortened(entry) +
                            "; expected the files that this index was written with");
        result.arrays->arrays.push_back(*stored);
        result.arrays->arrays.back().name = text("name");
        if (!stored->words && !text("store").empty())
            io::read_words(result.arrays->arrays.back(), text("store"));
    }
    return result;
}

}  // namespace attn::cli
