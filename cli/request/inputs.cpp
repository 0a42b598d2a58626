// Reads what a request works on; see inputs.hpp.
#include "cli/request/inputs.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/args/option.hpp"
#include "cli/request/apply.hpp"
#include "cli/request/discreet.hpp"
#include "cli/request/document.hpp"
#include "cli/request/model_input.hpp"
#include "cli/request/notes.hpp"
#include "cli/request/numeric_masks.hpp"
#include "cli/request/operand_rules.hpp"
#include "cli/request/schemas.hpp"
#include "cli/request/sources.hpp"
#include "cli/request/text_input.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {
namespace {

/// Short strings lie in their objects.
double bytes_of(const std::vector<std::string>& labels) {
    constexpr std::size_t of_allocation = 16;
    std::size_t bytes = labels.size() * sizeof(std::string);
    for (const std::string& label : labels)
        if (label.capacity() >= sizeof(std::string) / 2) bytes += label.capacity() + of_allocation;
    return static_cast<double>(bytes);
}

class OperandReader {
public:
    OperandReader(Request& request, Inputs& inputs, ThreadPool& workers, io::LoadedModels& models)
        : request_(request), inputs_(inputs), operands_(inputs.operands), workers_(workers),
          models_(models), masks_(request, operands_) {}

    void read(void (*check)(const Request&), std::optional<io::InputFile> input) {
        check_standard_input(request_);
        const bool is_line = input.has_value();
        if (input)
            input_ = std::move(input);
        else if (reads_input(request_))
            input_ = io::open_input_file(request_.input.empty() ? "-" : request_.input,
                                         request_.input_format, request_.access);
        if (input_) take_input();
        if (input_ && input_->source) count_text(input_->source->text, is_line);
        if (check != nullptr) check(request_);
        if (request_.threads) workers_.set_threads(*request_.threads);
        check_sources(request_, mode(), input_ ? &*input_ : nullptr, document_);
        const bool names_model = request_.has_file("weights") || request_.model_config;
        const bool of_request =
            names_model && !(is_from_flag(request_, "weights") &&
                             (!request_.model_config || is_from_flag(request_, "model_config")));
        read_named(of_request, [&] { read_model(); });
        if (mode().projects && request_.token_ids.empty()) read_inputs();
        read_operands();
        if (!request_.token_ids.empty()) read_named(of_request, [&] { embed_token_ids(); });
        if (model_ != nullptr) model_->check_input();
        masks_.settle();
        check_tokens();
        inputs_.text_while_reading += largest_text_ + largest_unrounded_;
        inputs_.text += bytes_of(request_.tokens) + bytes_of(request_.context_tokens);
    }

    void read_arrays(const io::InputFile& line) {
        input_ = line;
        request_.document = line.source;
        for (const io::JsonMember& member : line.document->members())
            if (is_array_of(mode().mode, *line.document, member))
                document_.members[member.key] = &member;
        if (mode().projects) read_inputs();
        read_operands();
        masks_.settle();
        check_tokens();
    }

private:
    void read_operands() {
        for (const OperandRule& rule : operand_rules())
            if ((rule.modes & in(mode().mode)) != 0) read_operand(rule);
    }

    /// The text of a batch's line is there twice, as it was read and as the record's; that of INPUT
    /// is let go of, unless errors of a batch may still quote it.
    void count_text(std::string_view text, bool is_line) {
        const auto bytes = static_cast<double>(text.size());
        if (request_.document && request_.of_batch)
            inputs_.text += is_line ? 2 * bytes : bytes;
        else
            inputs_.text_while_reading += bytes;
    }

    /// A request of a batch may say it.
    const ModeRow& mode() const { return row_of(request_.settings.mode); }

    /// What a record names may be the file of another than who asks.
    template <class Read>
    void read_named(bool by_request, const Read& read) const {
        try {
            read();
        } catch (const SettingError&) {
            throw;
        } catch (const Error& error) {
            if (request_.of_batch && by_request) throw_discreetly(error);
            throw;
        }
    }

    /// INPUT's settings; its arrays wait until the dtype is known.
    void take_input() {
        const bool is_document = input_->holds_object() && input_->array.empty();
        if (is_document) {
            request_.document = input_->source;
            document_ =
                read_request_document(request_, *input_->document, input_->place, is_operand);
            return;
        }
        if (!request_.has_mode)
            throw Error(ErrorKind::usage, input_->place,
                        "no mode; expected --mode, since a matrix does not say it");
        apply_waiting(request_);
        if (request_.of_batch) check_defaults(request_);
        if (mode().projects || !input_->arrays) {
            request_.places["inputs"] = input_->place;
            if (input_->arrays && input_->array.empty()) take_result(*input_->arrays);
            return;
        }
        for (const io::StoredArray& array : input_->arrays->arrays)
            if (is_operand(array.name, mode().mode) && !request_.has(array.name)) {
                request_.places[array.name] = array.place();
                stored_operands_[array.name] = &array;
            }
        const bool holds_query = stored_operands_.contains("query") || request_.has("query");
        if (stored_operands_.empty() || !holds_query) request_.places["inputs"] = input_->place;
    }

    /// A result of attn's in a binary format: its context vectors are the inputs of this layer.
    void take_result(const io::ArrayFile& file) {
        if (file.metadata == nullptr) return;
        const nlohmann::json& head = *file.metadata;
        if (!head.contains("schema") || head["schema"] != schemas::result) return;
        if (file.find("context_vectors") != nullptr) input_->array = "context_vectors";
        request_.is_next_layer = true;
        if (file.find("inputs") != nullptr) note_next_layer(request_, request_.input);
        if (!head.contains("tokens")) return;
        store_tokens(request_, head["tokens"], file.name);
        document_.one_row_of_many = file.config().contains("token");
    }

    /// The model's settings come before the arrays, its numbers once the dtype is known.
    void read_model() {
        const auto inline_weights = document_.members.find("weights");
        if (request_.has_file("weights")) {
            const std::string path = path_of("weights");
            request_.operand_files["weights"] = path;
            model_ = std::make_unique<ModelInput>(request_, models_, path);
        } else if (inline_weights != document_.members.end()) {
            const io::JsonDocument weights(*input_->source, *inline_weights->second);
            model_ = std::make_unique<ModelInput>(
                request_, models_, io::arrays_of(weights, place_of(request_, "weights")));
        } else {
            return check_no_model(request_);
        }
        for (const char* key : {"init", "rng_skip"})
            if (request_.has(key))
                throw Error(ErrorKind::usage, place_of(request_, key),
                            "nothing is drawn, since weights are given; expected none");
        operands_.weights = model_->read_weights();
        operands_.norm = model_->read_norm();
    }

    io::ArrayRules rules(std::size_t lowest_rank, std::size_t highest_rank) const {
        io::ArrayRules rules;
        rules.dtype = request_.settings.dtype;
        rules.memory_before = inputs_.text + inputs_.text_while_reading;
        for (const RealArray* read :
             {&operands_.inputs, &operands_.context, &operands_.query, &operands_.key,
              &operands_.value, &operands_.past_key, &operands_.past_value})
            rules.memory_before += read->bytes();
        rules.memory_before += sizeof(double) * static_cast<double>(operands_.mask.size());
        rules.lowest_rank = lowest_rank;
        rules.highest_rank = highest_rank;
        return rules;
    }

    void read_inputs() {
        const auto member = document_.members.find("inputs");
        if (request_.example) {
            read_example(request_, operands_);
        } else if (request_.text) {
            embed_text(request_, operands_, *request_.text);
        } else if (request_.has_file("inputs")) {
            read_named(true,
                       [&] { operands_.inputs = read_tokens_file(open_operand("inputs", true)); });
        } else if (member != document_.members.end()) {
            operands_.inputs = read_member(*member->second, rules(2, 3));
        } else if (!request_.has("inputs")) {
            throw Error(ErrorKind::input, input_->place,
                        "a request without \"inputs\"; expected a matrix under that key");
        } else {
            operands_.inputs = read_tokens_file(*input_);
        }
    }

    /// A matrix or batch; labels of CSV name the tokens.
    RealArray read_tokens_file(const io::InputFile& file) {
        const bool has_number =
            !file.source || file.source->text.find_first_of("0123456789") != std::string::npos;
        if (!has_number && !file.document)
            throw Error(ErrorKind::input, file.name,
                        "holds no number; expected a matrix, or its words by --text");
        io::MatrixLabels labels;
        RealArray inputs =
            rounded(io::read_reals(file, rules(2, 3), &workers_, request_.csv, &labels), file);
        note_on_terminal(request_, labels.note);
        take_labels(LabelsOf::queries, std::move(labels.rows));
        return inputs;
    }

    /// Of a file; a request's own win over them.
    void take_labels(LabelsOf axis, std::vector<std::string> labels) {
        if (axis == LabelsOf::none || labels.empty()) return;
        const bool of_keys = axis == LabelsOf::keys;
        if (request_.has(of_keys ? "context_tokens" : "tokens")) return;
        (of_keys ? request_.context_tokens : request_.tokens) = std::move(labels);
    }

    /// Positions go on after the cached keys.
    void embed_token_ids() {
        const RealArray& past = operands_.past_key;
        const std::size_t past_len = past.dimension() == 0 ? 0 : past.shape(past.dimension() - 2);
        operands_.inputs = model_->embed_token_ids(past_len);
        operands_.token_ids.assign(request_.token_ids.begin(), request_.token_ids.end());
        if (!request_.has("tokens")) request_.tokens = model_->token_labels();
    }

    void read_operand(const OperandRule& rule) {
        const auto member = document_.members.find(rule.key);
        const auto stored = stored_operands_.find(rule.key);
        const bool is_there = request_.has_file(rule.key) || member != document_.members.end() ||
                              stored != stored_operands_.end();
        if (!is_there && !rule.required) return;
        io::ArrayRules allowed = rules(rule.lowest_rank, rule.highest_rank);
        allowed.nonfinite = rule.nonfinite;
        allowed.boolean = rule.mask != nullptr;
        if (request_.has_file(rule.key)) {
            read_named(!is_from_flag(request_, rule.key), [&] { read_file(rule, allowed); });
        } else if (member != document_.members.end()) {
            if (rule.mask == nullptr)
                operands_.*rule.reals = read_member(*member->second, allowed);
            else
                masks_.take(rule,
                            input_->document->read_array(*member->second, allowed, &workers_));
        } else if (stored != stored_operands_.end()) {
            if (rule.mask == nullptr)
                operands_.*rule.reals = io::read_reals(*stored->second, allowed, &workers_);
            else
                masks_.take(rule, io::read_numbers(*stored->second, allowed, &workers_));
        } else {
            const std::string key = rule.key;
            const std::string expected =
                "is missing; expected a file, or \"" + key + "\" in the request";
            if (request_.of_batch)
                throw Error(ErrorKind::usage, input_->place, key + " " + expected);
            throw Error(ErrorKind::usage, "--" + key, expected);
        }
    }

    void read_file(const OperandRule& rule, const io::ArrayRules& allowed) {
        const io::InputFile file = open_operand(rule.key, rule.required);
        io::CsvStyle style = request_.csv;
        if (!rule.required) style = {.has_flags = false};
        io::MatrixLabels labels;
        if (rule.mask == nullptr) {
            operands_.*rule.reals =
                rounded(io::read_reals(file, allowed, &workers_, style, &labels), file);
            take_labels(rule.labels, std::move(labels.rows));
        } else {
            masks_.take(rule, io::read_one_array(file, allowed, &workers_, style, &labels),
                        !file.format->booleans);
        }
        note_on_terminal(request_, labels.note);
    }

    RealArray read_member(const io::JsonMember& member, const io::ArrayRules& allowed) {
        io::NumberArray read = input_->document->read_array(member, allowed, &workers_);
        return rounded(as_reals(std::move(read.values), allowed.dtype), *input_);
    }

    /// Numbers of a text are there as float64 too until all are rounded.
    RealArray rounded(RealArray read, const io::InputFile& file) {
        if (file.source && request_.settings.dtype == Dtype::float32)
            largest_unrounded_ = std::max(largest_unrounded_, 2 * read.bytes());
        return read;
    }

    /// Where an operand's file is: a request's paths start from the request's folder.
    std::string path_of(const std::string& key) const {
        const std::string& path = request_.operand_files.at(key);
        if (io::split_data_path(path).file == "-") {
            if (request_.of_batch || (input_ && input_->name == "<stdin>"))
                throw Error(ErrorKind::usage, place_of(request_, key),
                            request_.of_batch ? "standard input in a batch; expected a file"
                                              : "standard input named twice; expected it once");
            return path;
        }
        if (is_from_flag(request_, key) || !input_ || input_->name == "<stdin>") return path;
        return io::path_beside(input_->name, path);
    }

    /// What the flags say of INPUT holds for the other matrices of tokens, not for masks and
    /// caches.
    io::InputFile open_operand(const std::string& key, bool of_tokens) {
        io::InputFile file = io::open_input_file(
            path_of(key), of_tokens ? request_.input_format : nullptr, access_to(request_, key));
        request_.places[key] = file.name;
        if (file.source)
            largest_text_ = std::max(largest_text_, static_cast<double>(file.source->text.size()));
        return file;
    }

    void check_tokens() {
        const bool is_operator = !mode().projects;
        const auto rows = [](const RealArray& array) {
            const auto& shape = array.shape();
            return shape.size() < 2 ? std::size_t{0} : shape[shape.size() - 2];
        };
        const std::size_t queries = rows(is_operator ? operands_.query : operands_.inputs),
                          keys = rows(is_operator ? operands_.key : operands_.context);
        if (request_.has("context_tokens"))
            check_count("context_tokens", request_.context_tokens, keys);
        std::vector<std::string>& tokens = request_.tokens;
        // With cached keys before them, the number of labels alone would not say whose they are.
        const bool names_new_keys = is_operator && operands_.past_key.dimension() != 0 &&
                                    request_.context_tokens.empty() && tokens.size() == keys;
        if (names_new_keys) request_.context_tokens = tokens;
        if (!request_.has("tokens") || tokens.size() == queries) return;
        if (document_.one_row_of_many) return tokens.clear();
        // In sdpa they may be those of the keys.
        if (!is_operator || tokens.size() != keys)
            check_count("tokens", tokens, is_operator ? keys : queries);
    }

    void check_count(const char* key, const std::vector<std::string>& labels,
                     std::size_t count) const {
        if (labels.size() == count) return;
        throw Error(ErrorKind::input, place_of(request_, key),
                    "labels for " + std::to_string(labels.size()) +
                        (labels.size() == 1 ? " token" : " tokens") + "; expected " +
                        std::to_string(count) + ", one a token");
    }

    Request& request_;
    Inputs& inputs_;
    Operands& operands_;
    ThreadPool& workers_;
    io::LoadedModels& models_;
    std::optional<io::InputFile> input_;
    DocumentArrays document_;
    std::map<std::string, const io::StoredArray*, std::less<>> stored_operands_;
    std::unique_ptr<ModelInput> model_;
    NumericMasks masks_;
    // Of an operand's file, and of its numbers before they are rounded, in bytes: one is read after
    // the other.
    double largest_text_ = 0, largest_unrounded_ = 0;
};

}  // namespace

Inputs read_operands(Request& request, ThreadPool& workers, io::LoadedModels& models,
                     void (*check)(const Request&), std::optional<io::InputFile> input) {
    Inputs inputs;
    OperandReader(request, inputs, workers, models).read(check, std::move(input));
    apply_environment(request);
    if (!request.of_batch) settle_places(request);
    return inputs;
}

bool is_array_of(Mode mode, const io::JsonDocument& document, const io::JsonMember& member) {
    return document.holds_array(member) && (member.key == "inputs" || is_operand(member.key, mode));
}

Operands read_arrays(Request& request, const io::InputFile& line, ThreadPool& workers,
                     io::LoadedModels& models) {
    Inputs inputs;
    OperandReader(request, inputs, workers, models).read_arrays(line);
    request.notes.clear();
    return std::move(inputs.operands);
}

}  // namespace attn::cli
