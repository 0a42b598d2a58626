#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "cli/model/internal.hpp"
#include "core/base/memory.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
namespace {

std::size_t tokens_of(const ModelInput& input) {
    return input.hidden_states ? input.hidden_states->shape(0) : input.ids.size();
}

/// The length of the sequence for rotary angles that depend on it.
std::size_t length_of(const ModelInput& input) {
    if (input.positions.empty()) return tokens_of(input);
    return static_cast<std::size_t>(std::ranges::max(input.positions)) + 1;
}

/// Formats of one array require one name, of one layer if it is an array of layers.
void check_one_array(const Request& request, const ModelQuestion& question) {
    if (!request.format->one_array) return;
    const bool is_hidden = request.has("emit") && question.emit.front().ends_with("hidden_states");
    if (!request.has("emit") || question.emit.size() != 1 || question.layers.size() != 1 ||
        is_hidden)
        throw setting_error(
            request, "emit",
            std::string(request.format->name) + " holds one array; expected --emit with one name" +
                (is_hidden ? " other than hidden_states" : "") + ", and --layers with one number" +
                (request.format->decimals ? ", or csv-long" : ""));
}

void check_width(const Args& args, const io::OpenModel& model, const ModelInput& input) {
    if (!input.hidden_states) return;
    const std::size_t width = model.config().whole("hidden_size", 0),
                      found = input.hidden_states->shape(1);
    if (width != 0 && found != width)
        throw Error(ErrorKind::input, location_of(*args.find("hidden_states")), found,
                    " columns; expected ", width, ", the model's hidden_size");
}

/// The ids must be in the decoder's vocabulary.
void check_decoder_ids(const Args& args, const io::OpenModel& model, const ModelQuestion& question,
                       std::size_t vocabulary) {
    const bool is_given = args.has("decoder_ids");
    for (const std::uint64_t id : question.decoder_ids)
        if (id >= vocabulary)
            throw Error(
                ErrorKind::input,
                is_given ? location_of(*args.find("decoder_ids")) : model.config().location(),
                is_given ? "token id " : "decoder_start_token_id ", id,
                " is outside the vocabulary (0 to ", vocabulary - 1, ")");
}

/// Whether --emit has this name.
bool names(const Request& request, std::string_view array) {
    return request.has("emit") && std::ranges::count(request.settings.emit, array) != 0;
}

void check_head(const ModelSpec& model, const Request& request) {
    if (model.head && model.head()) return;
    throw Error(ErrorKind::usage, location_of(request, "generate"),
                "the model has no head, which gives the next token; expected a "
                "model with one");
}

/// Lists with an entry for each token do not say what generated ones have.
void check_generated(const Args& args, const Request& request, const ModelQuestion& question) {
    if (question.generate == 0) return;
    const char* const problem = "conflicts with --generate; expected one of them";
    for (const char* key : {"attention_mask", "position_ids", "token_type_ids", "text_pair"})
        if (args.has(key)) fail_at(args, key, problem);
    if (request.has("segment_ids")) throw setting_error(request, "segment_ids", problem);
}

/// The layers that are asked for may not have an array.
void check_found(const Request& request, const ModelQuestion& question, const ModelResult& result) {
    const bool is_one = result.arrays.size() == 1;
    if (is_one || (!request.format->one_array && !result.arrays.empty())) return;
    if (!result.arrays.empty())
        throw setting_error(request, "emit",
                            std::string(request.format->name) + " holds one array, and these are " +
                                result.arrays[0].name + " and " + result.arrays[1].name +
                                "; expected one of them");
    throw setting_error(request, "emit",
                        "the layers that are asked for have no " + io::comma_list(question.emit) +
                            "; expected other arrays, or other --layers");
}

/// The config of a result states the type of its model.
void check_type(const Args& args, const io::OpenModel& model) {
    const std::optional<std::string> type = args.text("model_type");
    if (type && *type != model.type())
        throw Error(ErrorKind::input, location_of(*args.find("model_type")),
                    "the model is of type ", model.type(), "; expected ", model.type());
}

/// Approximate bytes of an answer's numbers. As text: digits, sign, point and comma.
double text_bytes(const Request& request, const ModelCost& cost) {
    constexpr std::size_t of_any = 4;
    if (request.format->binary)
        return cost.numbers * static_cast<double>(row_of(request.settings.dtype).size);
    constexpr std::size_t of_table = 4;
    const double before = request.format->lists_elements ? bytes_before_element : 0;
    return cost.numbers * (before + static_cast<double>(
                                        of_any + request.precision.value_or(
                                                     request.format->marks_masked
                                                         ? of_table
                                                         : row_of(request.settings.dtype).digits)));
}

/// Bytes of the file's tensors that are in memory at a time: those of a layer,
/// or a table outside of the layers; to generate tokens, all of them.
double stored_bytes(const io::ArrayFile& file, bool all) {
    std::map<std::string, double> parts;
    for (const io::StoredArray& array : file.arrays) {
        const std::size_t digit = array.name.find_first_of("0123456789");
        const bool is_layer = digit != std::string::npos && !all;
        const std::size_t end = is_layer ? array.name.find('.', digit) : std::string::npos;
        parts[all ? std::string() : array.name.substr(0, end)] += static_cast<double>(array.size);
    }
    double most = 0;
    for (const auto& [name, bytes] : parts) most = std::max(most, bytes);
    return most;
}

}  // namespace

ModelPlan::ModelPlan(const ModelAsked& asked, ModelFiles& files)
    : request_(asked.request), path_(asked.path), files_(files), model_(files.model()) {
    const Args& args = asked.args;
    check_type(args, model_);
    question_.emit = arrays_named(request_, model_.decoder() != nullptr);
    request_.tokens = read_input(asked, files, question_, request_.num_truncated_tokens);
    question_.generate = static_cast<std::size_t>(args.whole("generate").value_or(0));
    spec_ = at_locations(request_, [&] {
        return model_.specify(length_of(question_.input),
                              model_.row().inputs.empty() ? nullptr : &question_.input);
    });
    if (model_.decoder() != nullptr)
        decoder_ = model_.decoder()->specify(question_.decoder_ids.size());
    check_question(args);
    at_locations(request_, [&] { choose_layers(args); });
    check_emit();
    check_parameters();
}

void refuse_dtype_of_models(const Request& request) {
    refuse(request, {{"dtype", request.settings.quantised_type.has_value(),
                      "is not supported in models; expected a dtype of 16 bits or more"}});
}

void ModelPlan::check_question(const Args& args) const {
    refuse_dtype_of_models(request_);
    if (question_.generate != 0 && question_.input.ids.empty() && !decoder_)
        throw Error(ErrorKind::usage, location_of(request_, "generate"),
                    std::string("requires --token-ids or --text") +
                        (args.has("hidden_states") ? " in place of --hidden-states" : ""));
    check_generated(args, request_, question_);
    if (!question_.input.segments.empty() && spec_.embedding.segments == nullptr &&
        args.has("token_type_ids"))
        fail_at(args, "token_type_ids", "the model has no segments; expected no such flag");
    check_width(args, model_, question_.input);
    if (decoder_) check_decoder_ids(args, model_, question_, decoder_->vocabulary);
    if (question_.generate != 0) check_head(last(), request_);
}

void ModelPlan::choose_layers(const Args& args) {
    const std::string layers = args.text("layers").value_or("all");
    if (decoder_) {
        const std::size_t deepest = std::max(spec_.layers, decoder_->layers);
        of_encoder_.layers = layers_of_stack(layers, spec_.layers, deepest);
        asked_.layers = layers_of_stack(layers, decoder_->layers, deepest);
        std::set_union(of_encoder_.layers.begin(), of_encoder_.layers.end(), asked_.layers.begin(),
                       asked_.layers.end(), std::back_inserter(question_.layers));
        // Numbers from the end differ between the stacks.
        if (layers.find('-') != std::string::npos) question_.layers_as_asked = layers;
    } else {
        asked_.layers = question_.layers = layers_named(layers, spec_.layers);
    }
    // By default arrays of the last layer are written if it is selected.
    const bool has_last = !asked_.layers.empty() && asked_.layers.back() + 1 == last().layers;
    if (!has_last && !request_.has("emit")) std::erase(question_.emit, "last_hidden_state");
    // A table of many matrices is a summary, which has them.
    const bool adds_next = has_last && !request_.has("emit") && is_on_terminal(request_) &&
                           !request_.wants_pictures() && last().head && last().head();
    if (adds_next)
        question_.emit.insert(question_.emit.end(), {"next_tokens", "next_token_probabilities"});
    asked_.arrays = {names_of_stack(question_.emit, decoder_ ? "decoder_" : ""),
                     request_.settings.head,
                     adds_next || names(request_, "logits") || names(request_, "next_tokens") ||
                         names(request_, "next_token_probabilities")};
    of_encoder_.arrays = {names_of_stack(question_.emit, "encoder_"), request_.settings.head};
    asked_.generate = of_encoder_.generate = question_.generate;
    if (question_.input.hidden_states) question_.input.first_layer = asked_.layers.front();
    asked_.run_layers = asked_.layers.empty() ? 0 : asked_.layers.back() + 1;
}

void ModelPlan::check_emit() const {
    check_one_array(request_, question_);
    for (const char* name :
         {"last_hidden_state", "logits", "next_tokens", "next_token_probabilities"})
        if (names(request_, name) &&
            (asked_.layers.empty() || asked_.layers.back() + 1 != last().layers))
            throw setting_error(
                request_, "emit",
                std::string(name) + " is of the last layer; expected --layers with -1 among them");
}

void ModelPlan::check_parameters() const {
    const std::size_t layers = question_.generate != 0 ? last().layers : asked_.run_layers;
    at_locations(request_, [&] {
        if (decoder_)
            model_.check(spec_, spec_.layers, *decoder_, layers);
        else
            model_.check(spec_, layers);
        // A head that is not used is checked as well.
        if (last().head) last().head();
    });
}

HeadMembers ModelPlan::head() const {
    return head_of_model(request_, path_, model_, question_,
                         files_.pieces_of(question_.decoder_ids));
}

io::Report ModelPlan::run(
    ThreadPool& pool,
    const std::function<void(std::size_t layer, std::size_t layers)>& progress) const {
    ModelRequest of_encoder = of_encoder_, asked = asked_;
    asked.progress = of_encoder.progress = progress;
    ModelResult result =
        at_locations(request_, [&] { return this->result(pool, of_encoder, asked); });
    check_found(request_, question_, result);
    Request labelled = request_;
    std::vector<std::string> decoder_tokens = files_.pieces_of(question_.decoder_ids);
    std::optional<std::string> text;
    if (!result.generated.empty()) {
        text = files_.text_after(decoder_ ? question_.decoder_ids : question_.input.ids,
                                 result.generated);
        const Labels pieces = files_.pieces_of(result.generated);
        const auto append_to = [&](Labels& labels) {
            for (std::size_t i = 0; i < result.generated.size(); ++i)
                labels.push_back(pieces.empty() ? std::to_string(result.generated[i]) : pieces[i]);
        };
        if (!decoder_ && request_.tokens.size() == question_.input.ids.size())
            append_to(labelled.tokens);
        if (!decoder_tokens.empty()) append_to(decoder_tokens);
    }
    io::Report report = make_model_report(
        labelled, path_, head_of_model(labelled, path_, model_, question_, decoder_tokens),
        question_, decoder_tokens, std::move(result), std::move(text), pool);
    if (const NamedArray* next = array_named("next_tokens", report.arrays)) {
        const auto& ids = std::get<Array<std::int64_t>>(next->values);
        report.rank_labels = readable_pieces(files_.pieces_of({ids.begin(), ids.end()}));
    }
    return report;
}

void ModelPlan::pass_layers_on(std::function<void(NamedArray array)> take) {
    asked_.take = of_encoder_.take = std::move(take);
}

void ModelPlan::run_layers(ThreadPool& pool) const {
    at_locations(request_, [&] { result(pool, of_encoder_, asked_); });
}

std::vector<bool> ModelPlan::valid_tokens() const {
    std::vector<bool> valid = question_.input.valid;
    if (valid.empty() && spec_.masked_id)
        for (const std::uint64_t id : question_.input.ids) valid.push_back(id != *spec_.masked_id);
    return valid;
}

std::vector<std::string> ModelPlan::notes() const {
    std::vector<std::string> notes;
    note_truncation(request_, question_.input.ids.size(), notes);
    const ModelInput& input = question_.input;
    const EmbeddingSpec& embedding = spec_.embedding;
    const auto first = std::find(input.valid.begin(), input.valid.end(), true);
    const bool is_padded = first != input.valid.begin() && first != input.valid.end(),
               has_positions = embedding.positions != nullptr || embedding.position_row != nullptr,
               counts_all = !embedding.padding_id && !embedding.counts_valid;
    if (!is_padded || input.ids.empty() || !input.positions.empty() || !has_positions ||
        !counts_all)
        return notes;
    std::string list;
    std::size_t count = 0;
    for (const bool valid : input.valid)
        list += (list.empty() ? "" : ",") + std::to_string(valid ? count++ : 0);
    notes.push_back(
        "--attention-mask: positions count the padding on the left as well; "
        "--position-ids " +
        io::shortened(list, 200) + " gives the numbers of the text without padding");
    return notes;
}

ModelCost ModelPlan::cost(const ModelRequest& of_encoder, const ModelRequest& asked) const {
    ThreadPool pool(request_.threads.value_or(0));
    const Compute compute = compute_on(pool);
    return at_locations(request_, [&] {
        const std::optional<Decoder> decoder = decoder_of(asked);
        ModelCost cost =
            measure_model(compute, spec_, question_.input, decoder_ ? of_encoder : asked,
                          decoder ? &*decoder : nullptr, request_.settings.dtype);
        for (const auto* given : {&question_.input.hidden_states, &question_.input.pixel_values,
                                  &question_.input.input_values, &question_.input.input_features})
            if (*given) cost.memory += (*given)->bytes();
        return cost;
    });
}

std::string ModelPlan::cost_line(bool with_text) const {
    const ModelCost cost = this->cost();
    const double text = text_bytes(request_, cost);
    std::string line = "{";
    io::append_member(line, "schema", schemas::cost);
    if (!request_.id.empty()) io::append_member(line, "id", io::JsonText{request_.id});
    io::append_member(line, "mode", std::string_view("model"));
    io::append_member(line, "tokens", cost.tokens);
    if (decoder_)
        io::append_member(line, "decoder_tokens",
                          question_.decoder_ids.size() + question_.generate);
    io::append_member(line, "layers", (decoder_ ? spec_.layers : 0) + asked_.run_layers);
    append_count(line, "flops", cost.flops);
    const double stored = stored_bytes(*model_.files().tensors, question_.generate != 0);
    constexpr double of_program = 0x1p23;
    const double tokenizer = files_.tokenizer_bytes(question_.generate != 0);
    append_count(line, "memory_bytes",
                 of_program + tokenizer + cost.memory + stored + (with_text ? text : 0));
    append_count(line, "output_numbers", cost.numbers);
    append_count(line, "output_bytes", text);
    return line + "}\n";
}

std::vector<std::string> ModelPlan::check_size() const {
    const auto smaller_ways = [&](double limit) {
        ModelRequest of_encoder = of_encoder_, asked = asked_;
        const std::size_t layer = question_.layers.back();
        for (ModelRequest* stack : {&of_encoder, &asked}) {
            std::erase_if(stack->layers, [&](std::size_t other) { return other != layer; });
            stack->arrays = {{"context_vectors"}, stack->arrays.heads};
        }
        const double bytes = text_bytes(request_, cost(of_encoder, asked));
        const bool fits = bytes > 0 && bytes <= limit;
        return fits ? "--layers " + std::to_string(layer) + " --emit context_vectors, " : "";
    };
    return at_locations(request_, [&] {
        return check_output_size(request_, text_bytes(request_, cost()), smaller_ways);
    });
}

void ModelPlan::require_memory(bool with_text) const {
    const ModelCost cost = this->cost();
    const double bytes = cost.memory + (with_text ? text_bytes(request_, cost) : 0);
    const ModelInput& input = question_.input;
    const char* const key = input.hidden_states    ? "hidden_states"
                            : input.pixel_values   ? "pixel_values"
                            : input.input_values   ? "input_values"
                            : input.input_features ? "input_features"
                            : request_.has("text") ? "text"
                                                   : "token_ids";
    at_locations(request_, [&] {
        attn::require_memory(bytes, key,
                             "a sequence of " + std::to_string(cost.tokens) + " tokens");
    });
}

Compute ModelPlan::compute_on(ThreadPool& pool) const {
    const std::string_view kernel = request_.settings.kernel;
    return {pool, kernel, &backend_of_products(kernel)};
}

std::optional<Decoder> ModelPlan::decoder_of(const ModelRequest& asked) const {
    if (!decoder_) return {};
    return Decoder{*decoder_, question_.decoder_ids, asked};
}

ModelResult ModelPlan::result(ThreadPool& pool, const ModelRequest& of_encoder,
                              const ModelRequest& asked) const {
    const NumberType dtype = request_.settings.dtype;
    const Compute compute = compute_on(pool);
    if (!decoder_) return run_model(compute, spec_, question_.input, asked, dtype);
    return run_encoder_decoder(compute, spec_, question_.input, of_encoder, *decoder_of(asked),
                               dtype);
}

}  // namespace attn::cli
