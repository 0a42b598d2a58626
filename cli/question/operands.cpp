#include "cli/question/operands.hpp"

#include "core/base/memory.hpp"
#include "io/file/path.hpp"
#include "io/read/examples.hpp"
#include "io/read/input_formats.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

class OperandReader {
public:
    OperandReader(const Request& request, const OperandSources& sources, ThreadPool& workers,
                  ReadOperands& read)
        : request_(request), input_(sources.input), model_(sources.model), rows_(sources.rows),
          text_bytes_(sources.text_bytes), projects_(request.projects()), workers_(workers),
          read_(read), operands_(read.operands),
          has_csv_(input_ != nullptr && input_->file.format == io::csv_input),
          masks_(request, operands_, input_ != nullptr ? input_->layout.get() : nullptr) {}

    void read() {
        if (model_ != nullptr)
            read_named(request_, is_model_of_document(request_), [&] {
                operands_.weights =
                    quantised(model_->read_weights(request_), request_.settings.quantised_type);
                operands_.norm = model_->read_norm(request_);
            });
        if (projects_ && request_.token_ids.empty()) read_inputs();
        const bool is_made = !projects_ && (request_.example || draws_inputs(request_));
        if (is_made) request_.example ? take_example() : take_draws({"query", "key", "value"});
        for (const char* key : {"qkv", "kv"})
            if (request_.has_file(key)) read_packed(key);
        for (const OperandRow& rule : operand_rows)
            if ((rule.modes & in(mode().mode)) != 0 && !(is_made && rule.is_tokens())) {
                if (operands_[rule].dimension() == 0) read_operand(rule);
                scales_.apply(operands_, rule, is_saved(rule));
                to_computed_order(request_, operands_, rule);
            }
        if (!request_.token_ids.empty())
            read_named(request_, is_model_of_document(request_), [&] { embed_token_ids(); });
        if (model_ != nullptr) model_->read_more_keys(request_, operands_);
        if (model_ != nullptr) add_notes(model_->notes_on_input(request_));
        masks_.resolve();
        scales_.require_used();
        note_growth();
        check_tokens(request_, read_);
        check_csv_flags();
        read_.text_bytes_while_reading = largest_text_ + largest_unrounded_;
    }

private:
    /// A record of a batch may specify the mode.
    const ModeRow& mode() const { return row_of(request_.settings.mode); }

    void add_notes(std::vector<std::string> notes) {
        for (std::string& note : notes) read_.notes.push_back(std::move(note));
    }

    /// Decays are often meant as factors.
    void note_growth() {
        if (request_.settings.decay_form != DecayForm::plain &&
            std::ranges::any_of(request_.settings.decay, [](double decay) { return decay > 0; }))
            add_notes({location_of(request_, "decay") +
                       ": a decay is a logarithm, and above 0 the state grows; to keep 90 % per "
                       "token, use -0.1054"});
    }

    io::ArrayRules rules(std::size_t lowest_rank, std::size_t highest_rank,
                         bool nonfinite = false) const {
        io::ArrayRules rules;
        rules.nonfinite = nonfinite;
        rules.dtype = request_.settings.dtype;
        rules.memory_before = text_bytes_;
        rules.lowest_rank = lowest_rank;
        rules.highest_rank = highest_rank;
        for (const OperandRow& row : operand_rows) rules.memory_before += operands_[row].bytes();
        rules.memory_before -= left_bytes_;
        return rules;
    }

    io::FileArray array_of_input(const char* key) const {
        return input_ != nullptr ? input_->array(request_, key) : io::FileArray();
    }

    /// Whether a mask may hide rows that hold NaN, which is known once the masks are read.
    bool may_hide_rows() {
        const auto has = [&](const char* key) { return request_.has(key) || array_of_input(key); };
        const bool has_mask = std::ranges::any_of(
            mask_operands, [&](const OperandRow* mask) { return has(mask->key); });
        read_.may_be_nonfinite =
            rows_ == nullptr && (has_mask || !request_.settings.kv_lengths.empty());
        return read_.may_be_nonfinite;
    }

    [[noreturn]] static void refuse_rows(const std::string& location) {
        throw Error(ErrorKind::usage, location,
                    "is not a file whose rows can be read alone; expected .npy or .safetensors on "
                    "a disk");
    }

    /// Whether every required operand must stay in its file.
    bool leaves_all() const { return rows_ != nullptr && rows_->of == OperandRows::Of::required; }
    /// Whether the rows of a required operand stay in this file. Errors: of a file that does not
    /// allow it, if every operand must.
    bool leaves_rows(const std::string& key, const io::InputFile& file,
                     const io::StoredArray* array) const {
        const bool of_keys = key == "key" || key == "value" || key == "context";
        const Settings& s = request_.settings;
        if (s.order() != QkvFormat::bhsd || s.key_scale || s.value_scale || s.quantised_type ||
            rows_ == nullptr || !(leaves_all() || of_keys))
            return false;
        const bool is_plain = file.format->name == "npy" || file.format->name == "safetensors",
                   on_disk = is_plain && array != nullptr && array->bytes->memory() == nullptr,
                   by_columns = on_disk && !array->strides.empty();
        if (!leaves_all()) return on_disk && !by_columns;
        if (!on_disk) refuse_rows(file.name);
        if (by_columns)
            throw Error(ErrorKind::input, array->location(),
                        "is in column-major order, in which rows are apart; expected row-major "
                        "order, by numpy.ascontiguousarray");
        return true;
    }

    /// An operand whose rows stay in their file: its shape.
    RealArray leave_rows(const std::string& key, const io::StoredArray& array,
                         const io::ArrayRules& allowed) {
        io::check_array(array, allowed);
        rows_->files.insert_or_assign(key, RowsInFile{array, allowed});
        const MemoryMeter no_memory(MemoryMeter::Run::dry);
        RealArray left = reals_of_shape(array.shape, allowed.dtype);
        left_bytes_ += left.bytes();
        return left;
    }

    /// The array of an operand's file, or its shape if rows stay there.
    RealArray read_or_leave(const std::string& key, const io::InputFile& file,
                            const io::ArrayRules& allowed, const io::CsvStyle& style,
                            io::MatrixLabels& labels) {
        const io::StoredArray* const array =
            rows_ != nullptr && file.arrays ? &io::stored_array(file) : nullptr;
        if (!leaves_rows(key, file, array))
            return rounded(io::read_reals(file, allowed, &workers_, style, &labels), file);
        labels.rows = io::row_labels(file, array->shape);
        return leave_rows(key, *array, allowed);
    }

    void read_inputs() {
        const io::FileArray inputs = array_of_input("inputs");
        const bool is_member = inputs.document != nullptr;
        if (leaves_all() && is_member) refuse_rows(input_->file.location);
        if (!request_.settings.drawn_shape().empty()) {
            take_draws({"inputs"});
        } else if (request_.example || request_.text) {
            TextInput text = read_text(request_);
            operands_["inputs"] = std::move(text.inputs);
            operands_.token_ids = std::move(text.token_ids);
            read_.left_out = text.left_out;
            const bool has_labels =
                request_.text ? request_.has("tokens") : !request_.tokens.empty();
            if (!has_labels) read_.tokens = std::move(text.tokens);
            read_.files["inputs"] = location_of(request_, !request_.text              ? "example"
                                                          : request_.has("embed_dim") ? "embed_dim"
                                                                                      : "text");
        } else if (request_.has_file("inputs")) {
            read_named(request_, true, [&] {
                operands_["inputs"] = read_tokens_file(open_operand("inputs", true));
            });
        } else if (is_member) {
            operands_["inputs"] =
                rounded(inputs.read_reals(rules(2, 3, may_hide_rows()), &workers_), input_->file);
        } else if (!request_.has("inputs")) {
            throw Error(ErrorKind::input, input_->file.location,
                        "a request without \"inputs\"; expected a matrix under that key");
        } else {
            operands_["inputs"] = read_tokens_file(input_->file);
        }
        if (!draws_inputs(request_)) to_computed_order(request_, operands_, "inputs");
    }

    void take_draws(std::initializer_list<const char*> keys) {
        set_shapes_of_draws(request_, operands_);
        for (const char* key : keys)
            read_.files[key] =
                location_of(request_, request_.settings.randn.empty() ? "rand" : "randn");
    }

    /// Query, key and value, or the last two, in one array, ([batch,] tokens, 3 or 2, heads, d).
    void read_packed(const std::string& packed) {
        static constexpr OperandId parts[] = {"query", "key", "value"};
        const std::size_t first = packed == "qkv" ? 0 : 1;
        for (const std::string key : {"query", "key", "value", "qkv", "example", "rand", "randn"})
            if (request_.has(key) && key != packed && (first == 0 || key != parts[0].row().key))
                throw setting_error(
                    request_, packed,
                    "conflicts with " + location_of(request_, key) + "; expected one of them");
        const io::InputFile file = open_operand(packed, true);
        split_packed(io::read_reals(file, rules(4, 5, true), &workers_, request_.csv),
                     file.location, std::span(parts).subspan(first), operands_);
    }

    void take_example() {
        io::Example example = io::find_example(*request_.example);
        operands_["query"] = std::move(example.query.values);
        operands_["key"] = std::move(example.key.values);
        operands_["value"] = std::move(example.value.values);
        scales_.hold_example(operands_);
    }

    /// Reads a matrix or a batch; row labels of CSV name the tokens.
    RealArray read_tokens_file(const io::InputFile& file) {
        const bool has_number =
            !file.source || file.source->text.find_first_of("0123456789") != std::string::npos;
        if (!has_number && !file.document)
            throw Error(ErrorKind::input, file.name,
                        "holds no number; expected a matrix, or in its place words as --text");
        io::MatrixLabels labels;
        RealArray inputs =
            read_or_leave("inputs", file, rules(2, 3, may_hide_rows()), request_.csv, labels);
        take_note(labels, file.name);
        take_labels(LabelsOf::queries, std::move(labels.rows));
        return inputs;
    }

    /// A batch shows no notes: there a column that would be left out by a guess is an error.
    void take_note(const io::MatrixLabels& labels, const std::string& file) {
        if (request_.of_batch && labels.counts)
            throw Error(ErrorKind::input, file,
                        "the first column counts the rows; expected --csv-index yes, which leaves "
                        "it out, or --csv-index no");
        add_note(labels.note, labels.is_guess, read_.notes);
    }

    /// Stores the labels of a file, unless the request has its own.
    void take_labels(LabelsOf axis, std::vector<std::string> labels) {
        if (axis == LabelsOf::none || labels.empty()) return;
        const bool of_keys = axis == LabelsOf::keys;
        if (request_.has(of_keys ? "context_tokens" : "tokens")) return;
        (of_keys ? read_.context_tokens : read_.tokens) = std::move(labels);
    }

    /// Positions continue after the cached keys.
    void embed_token_ids() {
        const RealArray& past = operands_["past_key"];
        const std::size_t past_len = past.dimension() == 0 ? 0 : past.shape(past.dimension() - 2);
        operands_["inputs"] = model_->embed_token_ids(request_, past_len);
        operands_.token_ids.assign(request_.token_ids.begin(), request_.token_ids.end());
        if (request_.has("tokens")) return;
        LayerSource::Labels labels = model_->token_labels(request_);
        read_.tokens = std::move(labels.tokens);
        if (!labels.note.empty()) read_.notes.push_back(std::move(labels.note));
    }

    /// Whether a result holds it, whose numbers were multiplied by their scales.
    bool is_saved(const OperandRow& rule) const {
        return input_ != nullptr && input_->layout && !request_.has_file(rule.key);
    }

    void read_operand(const OperandRow& rule) {
        // A constant of a flag precedes the request's array.
        if (rule.constants != nullptr && !(request_.settings.*rule.constants).empty() &&
            !is_array_in_document(rule.key))
            return;
        const io::FileArray given = array_of_input(rule.key);
        if (!request_.has_file(rule.key) && !given && !rule.is_required(projects_)) return;
        const bool may_hold_nan = rule.modes == in(Mode::cross) && may_hide_rows();
        io::ArrayRules allowed =
            rules(rule.lowest_rank, rule.highest_rank, rule.nonfinite || may_hold_nan);
        allowed.boolean = rule.is_mask();
        if (request_.has_file(rule.key)) {
            read_named(request_, !is_from_flag(request_, rule.key),
                       [&] { read_file(rule, allowed); });
        } else if (given) {
            if (given.stored != nullptr) note_integers(rule, *given.stored);
            if (rule.is_tokens() && leaves_rows(rule.key, input_->file, given.stored))
                operands_[rule] = leave_rows(rule.key, *given.stored, allowed);
            else if (!rule.is_mask())
                operands_[rule] = rounded(given.read_reals(allowed, &workers_), input_->file);
            else
                masks_.take(rule, given.read_numbers(allowed, &workers_));
        } else {
            const std::string key = rule.key;
            const std::string expected =
                request_.result ? "missing, as INPUT replaces what " + request_.result->location +
                                      " was computed on; expected a file"
                                : "missing; expected a file, or \"" + key + "\" in the request";
            if (request_.of_batch)
                throw Error(ErrorKind::usage, input_->file.location, key + " " + expected);
            throw Error(ErrorKind::usage, "--" + key, expected);
        }
    }

    /// Whether the key's value is an array of the request's document, or of another INPUT.
    bool is_array_in_document(const std::string& key) const {
        const auto found = request_.locations.find(key);
        return found != request_.locations.end() && found->second.in_document &&
               found->second.value.empty();
    }

    /// Queries, keys and values are rarely meant as integers, which indices and codes are.
    void note_integers(const OperandRow& rule, const io::StoredArray& array) {
        scales_.note_type(array.type);
        if (!rule.is_tokens() || !array.type || is_float(*array.type) || scales_.has(rule)) return;
        add_notes({array.location() + ": its numbers are of type " +
                   std::string(row_of(*array.type).name) +
                   ", and are read as they are; stored as floats they get no note"});
    }

    void read_file(const OperandRow& rule, const io::ArrayRules& allowed) {
        const io::InputFile file = open_operand(rule.key, rule.is_tokens());
        if (file.arrays) note_integers(rule, io::stored_array(file));
        io::CsvStyle style = request_.csv;
        if (!rule.is_tokens()) style = {.has_flags = false};
        io::MatrixLabels labels;
        if (!rule.is_mask()) {
            operands_[rule] =
                rule.is_tokens()
                    ? read_or_leave(rule.key, file, allowed, style, labels)
                    : rounded(io::read_reals(file, allowed, &workers_, style, &labels), file);
            take_labels(rule.labels, std::move(labels.rows));
        } else {
            masks_.take(rule, io::read_one_array(file, allowed, &workers_, style, &labels), &file);
        }
        take_note(labels, file.name);
    }

    /// Elements of a text are also in memory as float64 until all of them are rounded.
    RealArray rounded(RealArray read, const io::InputFile& file) {
        if (file.source && request_.settings.dtype == NumberType::float32)
            largest_unrounded_ = std::max(largest_unrounded_, 2 * read.bytes());
        return read;
    }

    /// --input-format applies to INPUT and the other matrices of tokens, not to masks and caches.
    io::InputFile open_operand(const std::string& key, bool of_tokens) {
        io::InputFile file = io::open_input_file(path_of(request_, input_, key),
                                                 of_tokens ? request_.input_format : nullptr,
                                                 access_to(request_, key));
        read_.files[key] = file.name;
        has_csv_ = has_csv_ || (of_tokens && file.format == io::csv_input);
        largest_text_ = std::max(largest_text_, file.text_bytes());
        return file;
    }

    /// Flags of a file or a batch are for other inputs too.
    void check_csv_flags() const {
        for (const HelpOverride& of_csv : csv_help)
            if (!has_csv_ && request_.keeps_flag(of_csv.key))
                throw setting_error(request_, std::string(of_csv.key),
                                    "no file of tokens is CSV; expected one, or no such flag");
    }

    const Request& request_;
    const Input* input_;
    const LayerSource* model_;
    OperandRows* rows_;
    double text_bytes_, left_bytes_ = 0;  // left_: of operands whose rows stay in their files
    const bool projects_;                 ///< the layer takes inputs, not query, key and value
    ThreadPool& workers_;
    ReadOperands& read_;
    Operands& operands_;
    OperandScales scales_{request_, request_.has_file("past_key") || array_of_input("past_key")};
    bool has_csv_;  // among the files of tokens
    MaskKinds masks_;
    // The largest text, and the largest elements before rounding, of any operand's file, in bytes.
    // Operands are read one after the other.
    double largest_text_ = 0, largest_unrounded_ = 0;
};

}  // namespace

ReadOperands read_operands(const Request& request, const OperandSources& sources,
                           ThreadPool& workers) {
    ReadOperands read;
    OperandReader(request, sources, workers, read).read();
    return read;
}

std::string path_of(const Request& request, const Input* input, const std::string& key) {
    const std::string& path = request.operand_files.at(key);
    const bool is_piped = input != nullptr && input->file.name == "<stdin>";
    if (io::is_standard_input(path)) {
        if (request.of_batch || is_piped)
            throw setting_error(request, key,
                                request.of_batch ? "standard input in a batch; expected a file"
                                                 : "standard input named twice; expected it once");
        return path;
    }
    const bool is_saved = input != nullptr && input->layout != nullptr;
    if (is_from_flag(request, key) || input == nullptr || is_piped || is_saved) return path;
    return io::path_beside(input->file.name, path);
}

bool is_model_of_document(const Request& request) {
    if (!request.has_file("weights") && !request.model_config) return false;
    return !is_from_flag(request, "weights") ||
           (request.model_config && !is_from_flag(request, "model_config"));
}

}  // namespace attn::cli
