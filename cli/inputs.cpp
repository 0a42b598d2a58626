// Reads what a request works on; see inputs.hpp.
#include "cli/inputs.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "cli/options.hpp"
#include "core/embedding.hpp"
#include "core/error.hpp"
#include "core/memory.hpp"
#include "io/csv.hpp"
#include "io/examples.hpp"
#include "io/json_document.hpp"
#include "io/source.hpp"

namespace attn::cli {
namespace {

constexpr std::string_view result_schema = "attn.result/1";
constexpr std::uint64_t default_vocab_size = 50000;
constexpr std::uint64_t default_embed_dim = 3;

bool is_json(const io::Source& source, InputFormat format) {
    if (format != InputFormat::automatic) return format == InputFormat::json;
    const std::string suffix = std::filesystem::path(source.name).extension();
    if (suffix == ".json") return true;
    if (suffix == ".csv" || suffix == ".tsv") return false;
    const char first = source.text[source.text.find_first_not_of(" \t\r\n")];
    return first == '[' || first == '{';
}

/// Formats that are known by name but not read yet would otherwise fail as broken text.
void refuse_binary_formats(const std::string& path) {
    const std::string suffix = std::filesystem::path(path).extension();
    for (const char* known : {".npy", ".npz", ".safetensors", ".parquet", ".pt", ".pth"})
        if (suffix == known)
            throw Error(ErrorKind::unsupported, path,
                        suffix + " files cannot be read; expected json or csv");
}

/// An operand that may have a file of its own or stand in the request.
struct OperandRule {
    const char* key;
    Modes modes;
    bool required;
    Array<double> Operands::*array;
    bool Operands::*is_boolean;  // null where true and false are not taken
    std::size_t lowest_rank, highest_rank;
    bool nonfinite;  // masks hold infinities, and blocked keys and values may hold anything
};

constexpr Modes anywhere = ~Modes{0};
constexpr OperandRule operand_rules[] = {
    {"query", in(Mode::sdpa), true, &Operands::query, nullptr, 2, 4, false},
    {"key", in(Mode::sdpa), true, &Operands::key, nullptr, 2, 4, true},
    {"value", in(Mode::sdpa), true, &Operands::value, nullptr, 2, 4, true},
    {"context", in(Mode::cross), true, &Operands::context, nullptr, 2, 3, false},
    {"past_key", anywhere, false, &Operands::past_key, nullptr, 2, 4, true},
    {"past_value", anywhere, false, &Operands::past_value, nullptr, 2, 4, true},
    {"mask", anywhere, false, &Operands::mask, &Operands::mask_is_boolean, 1, 4, true},
    {"key_padding_mask", anywhere, false, &Operands::key_padding_mask,
     &Operands::key_padding_mask_is_boolean, 1, 2, true},
};

class OperandReader {
public:
    explicit OperandReader(Request& request) : request_(request) {}

    Operands read() {
        check_standard_input();
        if (reads_input()) read_input();
        check_sources();
        if (request_.settings.mode != Mode::sdpa) read_inputs();
        for (const OperandRule& rule : operand_rules)
            if ((rule.modes & in(request_.settings.mode)) != 0) read_operand(rule);
        settle_numeric_masks();
        check_tokens();
        return std::move(operands_);
    }

private:
    bool reads_input() const {
        const bool given = request_.example || request_.text || request_.has_file("query") ||
                           request_.has_file("key") || request_.has_file("value");
        return !request_.input.empty() || !given;
    }

    /// INPUT's settings; its arrays wait until the dtype is known.
    void read_input() {
        const std::string path = request_.input.empty() ? "-" : request_.input;
        refuse_binary_formats(path);
        source_ = io::read_source(path);
        if (!is_json(source_, request_.input_format)) {
            request_.places["inputs"] = source_.name;
            return;
        }
        document_ = std::make_unique<io::JsonDocument>(source_);
        if (document_->is_array()) {
            request_.places["inputs"] = source_.name;
            return;
        }
        const io::JsonMember* schema = document_->find("schema");
        if (schema == nullptr)
            read_request();
        else if (document_->read_value(*schema) == result_schema)
            read_result();
        else
            throw Error(ErrorKind::input, document_->place(*schema),
                        "unknown schema; expected \"" + std::string(result_schema) + "\"");
    }

    void read_request() {
        // First, so that no other key is blamed for standing in the wrong mode.
        if (const io::JsonMember* mode = document_->find("mode")) check_mode(*mode);
        for (const io::JsonMember& member : document_->members()) {
            if (member.key == "mode") continue;
            if (member.key == "inputs") {
                request_.places["inputs"] = document_->place(member);
                inputs_ = &member;
            } else if (member.key == "id") {
                read_id(member);
            } else if (member.key == "tokens") {
                read_tokens(member);
            } else if (is_operand(member.key) && document_->holds_array(member)) {
                if (request_.has(member.key)) continue;  // a flag wins
                request_.places[member.key] = document_->place(member);
                inline_operands_[member.key] = &member;
            } else {
                const nlohmann::json value = document_->read_value(member);
                apply_key(request_, member.key, value, source_.place(member.key_offset));
            }
        }
    }

    /// The context vectors of an earlier layer are the inputs of this one.
    void read_result() {
        inputs_ = document_->find("context_vectors");
        if (inputs_ == nullptr)
            throw Error(ErrorKind::input, source_.name,
                        "a result without context_vectors; expected it among its arrays (--emit)");
        request_.places["inputs"] = source_.name;
        if (const io::JsonMember* tokens = document_->find("tokens")) {
            read_tokens(*tokens);
            one_row_of_many_ = is_one_row();
        }
    }

    /// A result of --token has one row of context, and the labels of all tokens.
    bool is_one_row() const {
        const io::JsonMember* config = document_->find("config");
        return config != nullptr && document_->read_value(*config).contains("token");
    }

    bool is_operand(const std::string& key) const {
        return std::any_of(
            std::begin(operand_rules), std::end(operand_rules), [&](const OperandRule& rule) {
                return rule.key == key && (rule.modes & in(request_.settings.mode)) != 0;
            });
    }

    void check_mode(const io::JsonMember& member) const {
        const nlohmann::json value = document_->read_value(member);
        const std::string mode(name_of(mode_names, request_.settings.mode));
        if (value != mode)
            throw Error(ErrorKind::usage, document_->place(member),
                        "the request has mode " + value.dump() + "; expected \"" + mode +
                            "\" as the command says");
    }

    void read_id(const io::JsonMember& member) {
        request_.id = document_->read_value(member);
        const bool plain =
            request_.id.is_string() || request_.id.is_number_integer() || request_.id.is_null();
        if (!plain)
            throw Error(ErrorKind::input, document_->place(member),
                        "an id that cannot be given back as it is; expected a string or a 64-bit "
                        "whole number");
    }

    void read_tokens(const io::JsonMember& member) {
        const nlohmann::json value = document_->read_value(member);
        if (value.is_null()) return;
        const bool strings =
            value.is_array() && std::all_of(value.begin(), value.end(),
                                            [](const auto& token) { return token.is_string(); });
        if (!strings)
            throw Error(ErrorKind::input, document_->place(member),
                        "tokens that are no list of strings; expected one string a token");
        request_.tokens = value.get<std::vector<std::string>>();
        request_.places["tokens"] = document_->place(member);
    }

    void check_standard_input() const {
        std::size_t from_stdin = request_.input == "-" ? 1 : 0;
        for (const auto& [key, path] : request_.operand_files)
            if (path == "-") ++from_stdin;
        if (from_stdin > 1)
            throw Error(ErrorKind::usage, "-", "standard input named twice; expected it once");
    }

    /// Two sources for the same matrix contradict each other; settings of a source that is not
    /// there would be ignored.
    void check_sources() const {
        std::vector<std::string> sources;
        for (const char* key : {"inputs", "example", "text"})
            if (request_.has(key)) sources.push_back(place_of(request_, key));
        if (sources.size() > 1)
            throw Error(ErrorKind::usage, sources[1],
                        "a second input beside " + sources[0] + "; expected one");
        if (request_.settings.mode == Mode::sdpa && request_.has("inputs"))
            throw Error(
                ErrorKind::usage, place_of(request_, "inputs"),
                "a matrix of inputs; sdpa has no projections, expected query, key and value");
        const bool reads_tokens = reads_input() || request_.settings.mode == Mode::cross ||
                                  request_.settings.mode == Mode::sdpa;
        for (const char* key : {"input_format", "csv_header", "csv_labels"})
            if (request_.has(key) && !reads_tokens)
                throw Error(ErrorKind::usage, place_of(request_, key),
                            "no file of tokens is read; expected INPUT beside it");
        const bool text = request_.text || request_.example == "sentence";
        for (const char* key : {"vocab_size", "embed_dim", "embed_seed"})
            if (request_.has(key) && !text)
                throw Error(ErrorKind::usage, place_of(request_, key),
                            "there is no text to embed; expected --text beside it");
    }

    io::ArrayRules rules(std::size_t lowest_rank, std::size_t highest_rank) const {
        io::ArrayRules rules;
        rules.dtype = request_.settings.dtype;
        rules.lowest_rank = lowest_rank;
        rules.highest_rank = highest_rank;
        return rules;
    }

    void read_inputs() {
        if (request_.example) {
            read_example();
        } else if (request_.text) {
            embed_text(*request_.text);
        } else if (inputs_ != nullptr) {
            operands_.inputs = read_member(*inputs_, rules(2, 3));
        } else if (document_ != nullptr && document_->is_array()) {
            operands_.inputs = document_->read_array(rules(2, 3)).to_array();
        } else if (document_ != nullptr) {
            throw Error(ErrorKind::input, source_.name,
                        "a request without \"inputs\"; expected a matrix under that key");
        } else {
            operands_.inputs = read_csv_matrix(source_);
        }
    }

    void read_example() {
        const std::string& name = *request_.example;
        const std::string_view all = io::example_names;
        for (std::size_t from = 0; from < all.size();) {
            const std::size_t bar = std::min(all.find('|', from), all.size());
            if (all.substr(from, bar - from) == name) {
                io::Example example = io::find_example(name);
                if (!example.text.empty()) return embed_text(example.text);
                if (request_.tokens.empty()) request_.tokens = std::move(example.tokens);
                operands_.inputs = example.inputs.to_array();
                return;
            }
            from = bar + 1;
        }
        throw Error(ErrorKind::usage, place_of(request_, "example"),
                    "unknown; expected " + std::string(all));
    }

    void embed_text(const std::string& text) {
        Words words = split_words(text);
        if (words.tokens.empty())
            throw Error(ErrorKind::input, place_of(request_, "text"),
                        "no word in it; expected at least one");
        request_.text = text;
        request_.vocab_size = request_.vocab_size.value_or(default_vocab_size);
        request_.embed_dim = request_.embed_dim.value_or(default_embed_dim);
        request_.embed_seed = request_.embed_seed.value_or(Seed{});
        if (*request_.vocab_size < words.vocabulary)
            throw Error(ErrorKind::usage, place_of(request_, "vocab_size"),
                        "the text has " + std::to_string(words.vocabulary) +
                            " different words; expected at least as many");
        check_table_size(words.tokens.size());
        operands_.inputs = embed(words.ids, *request_.vocab_size, *request_.embed_dim,
                                 *request_.embed_seed, request_.settings.dtype);
        operands_.token_ids = std::move(words.ids);
        if (!request_.has("tokens")) request_.tokens = std::move(words.tokens);
    }

    /// The whole table is drawn, if not kept: its size bounds the time that it takes.
    void check_table_size(std::size_t words) const {
        constexpr double largest = 0x1p32;
        const double rows = static_cast<double>(*request_.vocab_size);
        const double columns = static_cast<double>(*request_.embed_dim);
        if (rows * columns > largest)
            throw Error(ErrorKind::usage, place_of(request_, "vocab_size"),
                        "an embedding of " + std::to_string(*request_.vocab_size) + " x " +
                            std::to_string(*request_.embed_dim) +
                            " numbers; expected at most 4294967296 in all");
        require_memory(2 * sizeof(double) * columns * static_cast<double>(words), "embed_dim",
                       "the embedded text");
    }

    void read_operand(const OperandRule& rule) {
        io::ArrayRules allowed = rules(rule.lowest_rank, rule.highest_rank);
        allowed.nonfinite = rule.nonfinite;
        allowed.boolean = rule.is_boolean != nullptr;
        io::NumberArray read;
        if (request_.has_file(rule.key))
            read = read_file(request_.operand_files[rule.key], rule, allowed);
        else if (inline_operands_.contains(rule.key))
            read = document_->read_array(*inline_operands_[rule.key], allowed);
        else if (rule.required)
            throw Error(
                ErrorKind::usage, std::string("--") + rule.key,
                "is missing; expected a file, or \"" + std::string(rule.key) + "\" in the request");
        else
            return;
        operands_.*rule.array = read.to_array();
        if (rule.is_boolean != nullptr) {
            operands_.*rule.is_boolean = read.boolean;
            if (!read.boolean && is_0_or_1(read)) numeric_masks_.push_back(&rule);
        }
    }

    /// Masks of 0 and 1, as formats without booleans write them. Where a polarity is named and no
    /// mask of true and false is there to explain it, they are boolean.
    void settle_numeric_masks() {
        const bool explained = operands_.mask_is_boolean || operands_.key_padding_mask_is_boolean;
        if (!request_.settings.mask_true || explained) return;
        for (const OperandRule* rule : numeric_masks_) operands_.*rule->is_boolean = true;
    }

    static bool is_0_or_1(const io::NumberArray& array) {
        return std::all_of(array.values.begin(), array.values.end(),
                           [](double value) { return value == 0 || value == 1; });
    }

    Array<double> read_member(const io::JsonMember& member, const io::ArrayRules& allowed) {
        if (document_->holds_array(member))
            return document_->read_array(member, allowed).to_array();
        throw Error(ErrorKind::input, document_->place(member),
                    "\"" + member.key + "\" is no array; expected a matrix [[...], ...]");
    }

    /// An array from a file of its own; a request's paths start from the request's folder.
    io::NumberArray read_file(const std::string& path, const OperandRule& rule,
                              const io::ArrayRules& allowed) {
        refuse_binary_formats(path);
        if (path == "-" && source_.name == "<stdin>")
            throw Error(ErrorKind::usage, place_of(request_, rule.key),
                        "standard input named twice; expected it once");
        const bool from_flag = request_.places[rule.key].starts_with("--");
        std::filesystem::path folder;
        if (!from_flag && source_.name != "<stdin>")
            folder = std::filesystem::path(source_.name).parent_path();
        const io::Source file = io::read_source(path == "-" ? path : (folder / path).string());
        request_.places[rule.key] = file.name;
        // What the flags say of INPUT holds for the other matrices of tokens, not for masks and
        // caches, which have neither headers nor labels.
        const bool of_tokens = rule.required;
        if (!is_json(file, of_tokens ? request_.input_format : InputFormat::automatic))
            return read_csv_operand(file, rule, allowed);
        const io::JsonDocument document(file);
        if (document.is_array()) return document.read_array(allowed);
        throw Error(ErrorKind::input, file.name, "an object; expected a matrix [[...], ...]");
    }

    io::NumberArray read_csv_operand(const io::Source& file, const OperandRule& rule,
                                     const io::ArrayRules& allowed) {
        const io::CsvStyle plain{io::Guess::no, io::Guess::no};
        io::NumberArray read =
            io::read_csv(file, allowed, rule.required ? request_.csv : plain).matrix;
        const bool has_one =
            std::find(read.values.begin(), read.values.end(), 1.0) != read.values.end();
        if (rule.is_boolean != nullptr && !request_.settings.mask_true && has_one &&
            is_0_or_1(read))
            throw Error(
                ErrorKind::usage, file.name,
                "a mask of 0 and 1, which CSV cannot mark as boolean; expected mask_true keep or "
                "drop beside it, or JSON");
        return read;
    }

    Array<double> read_csv_matrix(const io::Source& source) {
        io::LabelledMatrix read = io::read_csv(source, rules(2, 2), request_.csv);
        request_.tokens = std::move(read.labels);
        return read.matrix.to_array();
    }

    void check_tokens() {
        if (!request_.has("tokens")) return;
        // In sdpa the labels are those of the keys, and of the queries where there are as many.
        const auto& shape =
            (request_.settings.mode == Mode::sdpa ? operands_.key : operands_.inputs).shape();
        const std::size_t length = shape[shape.size() - 2];
        if (request_.tokens.size() == length) return;
        if (one_row_of_many_) return request_.tokens.clear();
        throw Error(ErrorKind::input, place_of(request_, "tokens"),
                    "labels for " + std::to_string(request_.tokens.size()) +
                        (request_.tokens.size() == 1 ? " token" : " tokens") + "; expected " +
                        std::to_string(length) + ", one a token");
    }

    Request& request_;
    Operands operands_;
    io::Source source_;
    std::unique_ptr<io::JsonDocument> document_;
    const io::JsonMember* inputs_ = nullptr;
    std::map<std::string, const io::JsonMember*> inline_operands_;
    std::vector<const OperandRule*> numeric_masks_;
    bool one_row_of_many_ = false;
};

}  // namespace

Operands read_operands(Request& request) {
    Operands operands = OperandReader(request).read();
    apply_environment(request);
    return operands;
}

}  // namespace attn::cli
