#include "cli/question/question.hpp"

#include <unistd.h>

#include <cmath>
#include <utility>

#include "cli/question/operands.hpp"
#include "cli/request/field.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/threads.hpp"

namespace attn::cli {
namespace {

/// Short strings are stored inside their objects, without an allocation.
double bytes_of(const std::vector<std::string>& labels) {
    constexpr std::size_t of_allocation = 16;
    std::size_t bytes = labels.size() * sizeof(std::string);
    for (const std::string& label : labels)
        if (label.capacity() >= sizeof(std::string) / 2) bytes += label.capacity() + of_allocation;
    return static_cast<double>(bytes);
}

class QuestionReader {
public:
    QuestionReader(RequestWithInput& asked, const Runtime& runtime, OperandRows* rows)
        : asked_(asked), runtime_(runtime), rows_(rows) {}

    Question read() {
        return at_locations(asked_.request, [this] {
            if (asked_.input) count_text(*asked_.input);
            if (request().threads) runtime_.pool.set_threads(*request().threads);
            check_sources(asked_);
            for (const char* key : {"qkv", "kv"})
                if (request().has_file(key) && !request().has("qkv_format") &&
                    request().settings.batch_first.value_or(true))
                    apply_value(asked_.request, "qkv_format", "bshd", location_of(request(), key));
            apply_shorthands(asked_.request);
            for (const auto& [key, location] : request().locations) {
                const Option* const option = find_option(key);
                if (location.follows || option == nullptr || !is_in_config(request(), *option))
                    continue;
                append_value(given_.emplace_back(GivenSetting{key, {}}).value, *option, request());
            }
            read_named(request(), is_model_of_document(request()), [this] { open_model(); });
            if (request().text || request().example || request().settings.rng != Rng::torch)
                asked_.request = with_text(std::move(asked_.request));
            read_slopes();
            read_let();
            read_arrays();
            const OperandSources sources{input(), model_.get(), rows_,
                                         text_bytes_ + text_bytes_while_reading_};
            return finish(read_operands(request(), sources, runtime_.pool));
        });
    }

private:
    const Request& request() const { return asked_.request; }
    const Input* input() const { return asked_.input ? &*asked_.input : nullptr; }

    /// The text of a batch line is in memory twice, as read and as the record's. The text of INPUT
    /// is freed after reading, unless errors of a batch may still quote it.
    void count_text(const Input& input) {
        if (!input.file.source) return;
        const double bytes = input.file.text_bytes();
        if (request().document && request().of_batch)
            text_bytes_ += input.is_line ? 2 * bytes : bytes;
        else
            text_bytes_while_reading_ += bytes;
    }

    /// The model's settings are read before the arrays, its weights once the dtype is known.
    void open_model() {
        const Input* const input = this->input();
        if (input != nullptr && input->holds_parameters) {
            model_ = std::make_unique<SavedLayer>(*input);
        } else if (request().has_file("weights")) {
            const std::string path = path_of(request(), input, "weights");
            asked_.request.operand_files["weights"] = path;
            model_ = open_layer_source(request(), runtime_.models, path);
        } else if (const io::FileArray given =
                       input != nullptr ? input->array(request(), "weights") : io::FileArray();
                   given.document != nullptr) {
            const io::JsonDocument weights(*input->file.source, given.member);
            model_ = open_layer_source(request(), runtime_.models,
                                       io::arrays_of(weights, location_of(request(), "weights")));
        } else {
            return check_no_model(request());
        }
        asked_.request = model_->with_model(request());
        for (const char* key : {"init", "draw_order", "qkv_joined", "rng_skip"})
            if (request().has(key))
                throw setting_error(
                    request(), key,
                    "conflicts with --weights, which gives the parameters: none is drawn");
    }

    /// Slopes of ALiBi from a file become the setting. --no-alibi overrides slopes too.
    void read_slopes() {
        Settings& settings = asked_.request.settings;
        if (find_row(given_, &GivenSetting::key, std::string("alibi")) != nullptr)
            leave_out_slopes(asked_.request);
        read_setting("alibi_slopes", "alibi_slopes", 1, [&](io::NumberArray read) {
            settings.alibi_slopes.assign(read.values.begin(), read.values.end());
            settings.slope_formula.reset();
        });
    }

    /// Arrays of formulas from files become settings.
    void read_let() {
        std::vector<std::string> keys;
        for (const auto& [key, file] : request().operand_files)
            if (is_of_let(key)) keys.push_back(key);
        for (const std::string& key : keys)
            read_setting("let", key, 1, [&](io::NumberArray read) {
                asked_.request.settings.let[key.substr(let_prefix.size())] =
                    std::make_shared<const Array<double>>(std::move(read.values));
            });
    }

    /// Arrays of settings, the same.
    void read_arrays() {
        Settings& s = asked_.request.settings;
        const auto read = [&](const char* key, std::shared_ptr<const Array<double>>& to,
                              std::size_t lowest_rank = 1) {
            read_setting(key, key, lowest_rank, [&](io::NumberArray array) {
                to = std::make_shared<const Array<double>>(std::move(array.values));
            });
        };
        read("segment_ids", s.segment_ids);
        read("kv_segment_ids", s.kv_segment_ids);
        read("kv_lengths", s.query_lengths, 2);
        read("block_mask", s.block_mask, 2);
        read("relative_bias", s.relative_bias, 2);
        read("cu_seqlens", s.cu_seqlens);
        read("cu_seqlens_k", s.cu_seqlens_k);
        read("key_scale", s.key_scale);
        read("value_scale", s.value_scale);
        read("bonus", s.bonus);
        read("position_ids", s.position_ids);
        read("key_position_ids", s.key_position_ids);
    }

    /// Passes the array of a setting's file on, if it has one under `key`; it is read once.
    template <class Take>
    void read_setting(const std::string& option, const std::string& key, std::size_t lowest_rank,
                      const Take& take) {
        if (!request().has_file(key)) return;
        read_named(request(), !is_from_flag(request(), option), [&] {
            const io::InputFile file = io::open_input_file(path_of(request(), input(), key),
                                                           nullptr, access_to(request(), option));
            io::ArrayRules rules;
            rules.dtype = arithmetic_of(request().settings.dtype);
            rules.lowest_rank = lowest_rank;
            rules.highest_rank = 4;
            rules.boolean = option != key || key == "block_mask";
            take(io::read_one_array(file, rules, &runtime_.pool, {.has_flags = false}));
            asked_.request.operand_files.erase(key);
            asked_.request.locations[key] = file.name;
        });
    }

    Question finish(ReadOperands read) {
        if (asked_.input)
            read.notes.insert(read.notes.end(), asked_.input->notes.begin(),
                              asked_.input->notes.end());
        if (asked_.input && asked_.input->has_own_inputs)
            read.notes.insert(read.notes.begin(), note_of_next_layer(request().input));
        Question question{std::move(asked_.request), std::move(read.operands),
                          std::move(read.notes)};
        Request& request = question.request;
        question.may_be_nonfinite = read.may_be_nonfinite;
        request.num_truncated_tokens = read.left_out;
        note_truncation(request, question.operands.token_ids.size(), question.notes);
        if (read.tokens) request.tokens = std::move(*read.tokens);
        if (read.context_tokens) request.context_tokens = std::move(*read.context_tokens);
        for (auto& [key, file] : read.files) request.locations[key] = std::move(file);
        if (!request.of_batch) request = without_document(std::move(request));
        question.text_bytes =
            text_bytes_ + bytes_of(request.tokens) + bytes_of(request.context_tokens);
        question.text_bytes_while_reading =
            text_bytes_while_reading_ + read.text_bytes_while_reading;
        question.given = std::move(given_);
        question.models = &runtime_.models;
        return question;
    }

    RequestWithInput& asked_;
    const Runtime& runtime_;
    OperandRows* rows_;
    std::unique_ptr<LayerSource> model_;
    std::vector<GivenSetting> given_;
    double text_bytes_ = 0, text_bytes_while_reading_ = 0;
};

}  // namespace

void check_finite_rows(const Request& request, const Plan& plan, const Operands& operands) {
    std::optional<Mask> mask;
    const auto is_seen = [&](std::size_t batch, std::size_t token) {
        if (!mask) mask = mask_of(plan, operands);
        for (std::size_t head = 0; head < plan.heads; ++head)
            for (std::size_t query = 0; query < plan.q_len; ++query)
                if (mask->allows(batch, head, query, plan.past_len + token)) return true;
        return false;
    };
    const auto check = [&](const char* key, const auto& values, bool are_keys) {
        const std::vector<std::size_t>& shape = values.shape();
        if (shape.empty()) return;
        const std::size_t width = shape.back(), tokens = shape[shape.size() - 2];
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (std::isfinite(values.data()[i])) continue;
            const std::size_t row = i / width, batch = row / tokens, token = row % tokens;
            if (!are_keys || is_seen(batch, token))
                throw SettingError(
                    ErrorKind::input, key,
                    (shape.size() == 3 ? "entry " + std::to_string(batch) + ", " : std::string()),
                    "token ", token, ", column ", i % width,
                    ": not a finite number, where no mask hides the token from every query; "
                    "expected a finite number");
            i = (row + 1) * width - 1;
        }
    };
    const bool has_context = row_of(plan.config.mode).context;
    for (const OperandId operand :
         {OperandId("inputs"), OperandId("context"), OperandId("value_input")}) {
        const bool of_inputs = operand == OperandId("inputs");
        if (of_inputs && draws_inputs(request)) continue;  // no elements yet
        operands[operand].visit([&](const auto& values) {
            check(operand.row().key, values, !of_inputs || !has_context);
        });
    }
}

Question read_question(RequestWithInput&& asked, const Runtime& runtime, OperandRows* rows) {
    return QuestionReader(asked, runtime, rows).read();
}

Plan plan_of(Question& question, const PlanOptions& options) {
    Plan plan = at_locations(question.request, [&] {
        Request& request = question.request;
        check_array_names(options.emit ? *options.emit : request.settings.emit);
        const OperandShapes shapes = shapes_of(question.operands);
        if (!request.token_label.empty()) {
            const Shape& rows = request.projects() ? shapes["inputs"] : shapes["query"];
            request.settings.token = token_labelled(request, rows[rows.size() - 2]);
            request.token_label.clear();
        }
        return make_plan(std::move(request.settings), shapes, options);
    });
    // A result's own generator stays; flags of a file or a batch are for other questions too.
    const Request& asked = question.request;
    const bool asks_rng = is_from_key(asked, "rng") ||
                          (is_from_flag(asked, "rng") && asked.keeps_flag("rng")),
               draws = plan.draws_parameters() || !plan.config.drawn_shape().empty();
    if (asks_rng && plan.config.rng != Rng::torch && !draws && !asked.has("device"))
        throw setting_error(asked, "rng",
                            "neither the input nor a parameter is drawn; expected no such flag");
    question.request.settings = plan.config;
    question.request.asked =
        asked_beside_config(question.request, question.given, plan.operands, *question.models);
    for (std::string& note : notes_of_shapes(question.request, plan))
        question.notes.push_back(std::move(note));
    if (question.may_be_nonfinite)
        at_locations(question.request,
                     [&] { check_finite_rows(question.request, plan, question.operands); });
    return plan;
}

PlannedQuestion plan_question(Question question, const PlanOptions& options) {
    Plan plan = plan_of(question, options);
    return with_cost(std::move(question), std::move(plan));
}

PlannedQuestion with_cost(Question question, Plan plan) {
    // Not the pool's threads: the memory that a record needs must not depend on the number of jobs.
    const auto threads = question.request.threads.value_or(processors());
    Cost cost = measure(plan, threads);
    cost.memory = question.text_bytes +
                  std::max(cost.memory, cost.operand_bytes + question.text_bytes_while_reading);
    cost.answer_memory += question.text_bytes;
    at_locations(question.request, [&] { require_memory(plan, cost); });
    if (draws_inputs(question.request) && !question.request.dry_run)
        draw_inputs(question.request, question.operands);
    return {std::move(question), std::move(plan), cost};
}

Answer answer(PlannedQuestion&& planned, const Runtime& runtime) {
    Question& question = planned.question;
    Plan& plan = planned.plan;
    std::optional<Mask> mask;
    if (question.request.marks_masked()) mask = mask_of(plan, question.operands);
    Result result = at_locations(question.request, [&] {
        return compute(plan, std::move(question.operands), runtime.pool);
    });
    for (const Overflow& overflow : result.overflows)
        question.notes.push_back(concat(overflow.array.row().name, index_text(overflow.index),
                                        " is beyond the range of ", row_of(plan.config.dtype).name,
                                        " (", row_of(plan.config.dtype).largest_text,
                                        ") and becomes an infinity"));
    return {std::move(question), std::move(plan), std::move(result), std::move(mask)};
}

Answer answer(Question question, const PlanOptions& options, const Runtime& runtime) {
    return answer(plan_question(std::move(question), options), runtime);
}

AxisLabels axis_labels(const ModeRow* mode, const std::vector<std::string>& tokens,
                       const std::vector<std::string>& context_tokens, const Lengths& lengths) {
    AxisLabels labels;
    if (tokens.size() == lengths.queries) labels.queries = tokens;
    const bool is_named = !context_tokens.empty();
    if (!is_named && mode != nullptr && mode->context && mode->source == Source::inputs)
        return labels;
    const std::vector<std::string>& source = is_named ? context_tokens : tokens;
    // Only their number shows whether `tokens` also name the keys.
    const bool must_be_all = !is_named && (mode == nullptr || mode->context);
    const bool fits = must_be_all ? source.size() == lengths.keys : source.size() <= lengths.keys;
    if (source.empty() || !fits) return labels;
    const std::size_t cached = lengths.keys - source.size();
    labels.keys.reserve(lengths.keys);
    for (std::size_t key = 0; key < cached; ++key)
        labels.keys.push_back("cached " + std::to_string(key));
    labels.keys.insert(labels.keys.end(), source.begin(), source.end());
    return labels;
}

AxisLabels axis_labels(const Request& request, const Plan& plan) {
    return axis_labels(&row_of(plan.config.mode), request.tokens, request.context_tokens,
                       {plan.q_len, plan.kv_len});
}

void refuse_keyboard(const std::string& command, const std::string& missing) {
    if (::isatty(STDIN_FILENO) == 0) return;
    throw Error(ErrorKind::usage, command, missing + " (" + command + " -h has more)");
}

void require_input(const Request& request, const std::string& command) {
    if (request.names_input()) return;
    const ModeRow& mode = row_of(request.settings.mode);
    if (mode.source == Source::operands)
        return refuse_keyboard(command,
                               "no query, key and value; expected --query FILE --key FILE --value "
                               "FILE, or a request that holds them, as a file or piped in");
    if (request.has("weights"))
        return refuse_keyboard(
            command,
            "no input; expected --token-ids N,..., or a file whose rows have the "
            "width of the weights");
    const bool lacks_context = mode.context && !request.has_file("context");
    refuse_keyboard(
        command,
        "no input; expected a file, '-' with data piped in, or --example journey" +
            std::string(lacks_context ? ", and --context FILE" : "") +
            (mode.source == Source::either ? ", or --query FILE --key FILE --value FILE" : ""));
}

template <class T>
T* read_rows(const RowsInFile& file, std::size_t matrix, std::size_t first, std::size_t count,
             T* to, ThreadPool& pool) {
    if (count == 0) return to;
    io::ArrayRules rules = file.rules;
    rules.lowest_rank = rules.highest_rank = 2;
    const Array<T> rows =
        io::read_array<T>(io::rows_of(file.array, matrix, first, count), rules, &pool);
    return std::copy_n(rows.data(), rows.size(), to);
}

template float* read_rows(const RowsInFile&, std::size_t, std::size_t, std::size_t, float*,
                          ThreadPool&);
template double* read_rows(const RowsInFile&, std::size_t, std::size_t, std::size_t, double*,
                           ThreadPool&);

}  // namespace attn::cli
