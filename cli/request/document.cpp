// A request, or an earlier result, as a JSON object; see document.hpp.
#include "cli/request/document.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "cli/args/option.hpp"
#include "cli/request/apply.hpp"
#include "cli/request/notes.hpp"
#include "cli/request/options.hpp"
#include "cli/request/schemas.hpp"
#include "core/base/error.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

class DocumentReader {
public:
    DocumentReader(Request& request, const io::JsonDocument& document, const std::string& place,
                   IsOperand is_operand)
        : request_(request), document_(document), place_(place), is_operand_(is_operand) {}

    DocumentArrays read() {
        const io::JsonMember* schema = document_.find("schema");
        if (schema == nullptr)
            read_request();
        else if (document_.read_value(*schema) == schemas::result)
            read_result();
        else
            throw Error(ErrorKind::input, document_.place(*schema),
                        "unknown schema; expected \"" + std::string(schemas::result) + "\"");
        return std::move(arrays_);
    }

private:
    void read_request() {
        if (document_.find("error") != nullptr)
            throw Error(ErrorKind::input, place_,
                        "a record that failed in an earlier batch; expected a request or a result");
        // First, so that no other key is blamed for standing in the wrong mode.
        if (const io::JsonMember* mode = document_.find("mode")) take_mode(*mode);
        check_mode();
        for (const io::JsonMember& member : document_.members()) {
            const bool is_operand = is_operand_(member.key, request_.settings.mode);
            const bool is_weights = member.key == "weights" && document_.holds_object(member);
            if (member.key == "mode") continue;
            if (request_.no_files) refuse_file(member);
            if (member.key == "inputs") {
                store_inputs(member);
            } else if (member.key == "id") {
                store_id(request_, document_, member);
            } else if (member.key == "tokens") {
                store_tokens(request_, document_.read_value(member), document_.place(member));
            } else if (is_weights || (is_operand && document_.holds_array(member))) {
                if (request_.keeps_flag(member.key)) continue;
                request_.operand_files.erase(member.key);
                request_.places[member.key] = Place(member.begin);
                arrays_.members[member.key] = &member;
            } else {
                apply_key(request_, member.key, document_.read_value(member),
                          Place(member.key_offset, document_.text(member)));
            }
        }
    }

    /// The context vectors of an earlier layer are the inputs of this one.
    void read_result() {
        check_mode();
        if (const io::JsonMember* id = document_.find("id")) store_id(request_, document_, *id);
        const io::JsonMember* vectors = document_.find("context_vectors");
        request_.places["inputs"] = place_;
        if (!row_of(request_.settings.mode).projects) return;  // takes no inputs
        if (vectors == nullptr)
            throw Error(ErrorKind::input, place_,
                        "a result without context_vectors; expected it among its arrays (--emit)");
        arrays_.members["inputs"] = vectors;
        request_.is_next_layer = true;
        if (document_.find("inputs") != nullptr) note_next_layer(request_, request_.input);
        if (const io::JsonMember* tokens = document_.find("tokens")) {
            store_tokens(request_, document_.read_value(*tokens), document_.place(*tokens));
            const io::JsonMember* config = document_.find("config");
            arrays_.one_row_of_many =
                config != nullptr && document_.read_value(*config).contains("token");
        }
    }

    void check_mode() {
        if (!request_.has_mode)
            throw Error(ErrorKind::usage, place_,
                        "no mode; expected \"mode\" in the request, or --mode beside it");
        apply_waiting(request_);
        check_defaults(request_);
    }

    void take_mode(const io::JsonMember& member) {
        const json value = document_.read_value(member);
        if (request_.of_batch) {
            const ModeRow* known = mode_named(value.is_string() ? value.get<std::string>() : "");
            if (known == nullptr)
                throw Error(
                    ErrorKind::usage, document_.place(member),
                    "unknown mode " + io::shortened(value.dump()) + "; expected " + listed_modes());
            request_.settings.mode = known->mode;
            request_.has_mode = true;
            return;
        }
        const std::string mode(row_of(request_.settings.mode).name);
        if (value != mode)
            throw Error(ErrorKind::usage, document_.place(member),
                        "the request has mode " + value.dump() + "; expected \"" + mode +
                            "\" as the command says");
    }

    /// Nothing is looked for at the path, not even whether it is there.
    void refuse_file(const io::JsonMember& member) const {
        if (names_file(member.key) && document_.text(member).starts_with('"'))
            throw Error(ErrorKind::usage, document_.place(member),
                        "\"" + member.key + "\" names a file, and --no-files is on; expected none");
    }

    /// A matrix, or the path of one.
    void store_inputs(const io::JsonMember& member) {
        request_.places["inputs"] = Place(member.begin);
        if (document_.holds_array(member)) {
            arrays_.members["inputs"] = &member;
            return;
        }
        const json value = document_.read_value(member);
        const std::string path = value.is_string() ? value.get<std::string>() : "";
        if (path.empty() || path.find('\0') != std::string::npos)
            throw Error(ErrorKind::input, document_.place(member),
                        "\"inputs\" is no array and no path; expected a matrix [[...], ...]");
        request_.operand_files["inputs"] = path;
    }

    Request& request_;
    const io::JsonDocument& document_;
    const std::string& place_;
    IsOperand is_operand_;
    DocumentArrays arrays_;
};

}  // namespace

DocumentArrays read_request_document(Request& request, const io::JsonDocument& document,
                                     const std::string& place, IsOperand is_operand) {
    return DocumentReader(request, document, place, is_operand).read();
}

void store_id(Request& request, const io::JsonDocument& document, const io::JsonMember& member) {
    if (document.is_plain(member)) {
        request.id = document.text(member);
        return;
    }
    const json id = document.read_value(member);
    if (id.is_null()) return;
    if (!id.is_string() && !id.is_number_integer())
        throw Error(ErrorKind::input, document.place(member),
                    "an id that cannot be given back as it is; expected a string or a 64-bit "
                    "whole number");
    request.id = io::json_text(id);
}

void store_tokens(Request& request, const json& value, const std::string& place) {
    if (!value.is_null() && !request.keeps_flag("tokens"))
        apply_said(request, "tokens", value, place);
}

}  // namespace attn::cli
