// The explanation before and after the heads: question, input, projections, output.
#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "cli/explain/walk.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

void show_question(Walk& walk) {
    const Plan& g = walk.plan;
    if (walk.draws_parameters() || walk.draws_inputs()) {
        const std::string what = !walk.draws_inputs() ? "The parameters are"
                                 : walk.draws_parameters()
                                     ? "The parameters and the words' rows are"
                                     : "The words' rows are";
        walk.page->paragraph(what +
                             " random numbers, not learned: the percentages show how attention is "
                             "computed, not what a trained model looks at.");
    }
    const bool is_given = walk.request.has("token"), is_alone = walk.source.has_one_query;
    std::string words = "This is query " + walk.query_label() + " of " + std::to_string(g.q_len) +
                        ", counted from 0 (" +
                        (is_alone   ? "the result has this one alone"
                         : is_given ? walk.source_of("token")
                                    : "by default; --token I or --token LABEL shows another") +
                        ").";
    if (g.batch > 1)
        words += " Batch entry " + std::to_string(walk.batch) + " of " + std::to_string(g.batch) +
                 " is shown (--batch B shows another).";
    if (walk.end_head - walk.first_head != g.heads)
        words += " Head " + std::to_string(walk.first_head) + " of " + std::to_string(g.heads) +
                 " is shown (--head H shows another).";
    walk.page->paragraph(words);
    if (!walk.is_result()) return;
    std::string file = "The numbers are those of " + io::one_line(walk.source.file) +
                       "; the page computes nothing again but the steps between scores and "
                       "weights.";
    if (!walk.source.missing.empty())
        file += " It does not have " + walk.source.missing + " (--emit all writes them).";
    walk.page->paragraph(file);
}

void show_sizes(Walk& walk) {
    const Plan& g = walk.plan;
    std::string sizes;
    for (const auto& [name, size] : {std::pair("batch", g.batch),
                                     {"heads", g.heads},
                                     {"kv_heads", g.kv_heads},
                                     {"q_len", g.q_len},
                                     {"kv_len", g.kv_len},
                                     {"d_in", g.d_in},
                                     {"d_k", g.d_k},
                                     {"d_v", g.d_v}})
        if (size != 0) sizes += (sizes.empty() ? "" : ", ") + sized(name, size);
    walk.page->paragraph("Sizes, d_k and d_v being those of one head: " + sizes + ". Numbers are " +
                         std::string(name_of(dtype_names, walk.settings().dtype)) + " (" +
                         walk.source_of("dtype") + "), rounded to " +
                         std::to_string(walk.words.decimals()) +
                         (walk.words.decimals() == 1 ? " digit" : " digits") +
                         " after the point on this page only (--precision).");
}

std::string source_of_inputs(const Walk& walk) {
    const Request& request = walk.request;
    if (request.example && !request.text)
        return "come from --example " + io::one_line(*request.example);
    if (request.text)
        return "are drawn at random, a row for each word (" + walk.source_of("embed_seed") + ")";
    if (!request.token_ids.empty()) return "come from --token-ids and the model of --weights";
    if (walk.is_result()) return "come from the result";
    if (!request.has("inputs")) return "come from INPUT";
    return std::string("come from ") +
           (request.is_next_layer ? "the context_vectors of the earlier result " : "") +
           walk.source_of("inputs");
}

/// The rows of the tables that a model adds up for a token.
std::string embedding_words(const Walk& walk) {
    const io::Family* family = walk.request.family;
    if (family == nullptr || !walk.arrays.has("token_ids") || walk.draws_inputs()) return "";
    const io::EmbeddingNames& names = family->embedding;
    const double id = walk.arrays.number("token_ids", 0);
    struct Part {
        std::string_view table;
        std::string row;
        const char* what;
    };
    std::string rows, whats;
    for (const Part& part :
         {Part{names.ids, std::to_string(static_cast<std::int64_t>(id)), "token id"},
          Part{names.segments, "0", "segment"},
          Part{names.positions,
               std::to_string(walk.plan.past_len + walk.query() +
                              walk.request.position_offset.value_or(0)),
               "position"}}) {
        if (part.table.empty()) continue;
        rows += (rows.empty() ? "" : " + ") + std::string(part.table) + "[" + part.row + "]";
        if (whats.empty() && walk.request.embedding_scale)
            rows += " * " + setting_text(*walk.request.embedding_scale);
        whats += (whats.empty() ? "its " : ", ") + std::string(part.what);
    }
    return "In the model this row is " + rows + ", by " + whats +
           (names.norm.empty() ? "" : ", and then the norm " + std::string(names.norm)) +
           (walk.settings().rope ? "; positions come in by the rotary embedding." : ".");
}

void show_input(Walk& walk) {
    const WalkArrays& arrays = walk.arrays;
    if (!row_of(walk.settings().mode).projects) {
        walk.page->heading(2, "Input");
        std::string words =
            "The bare operator has no projections: query, key and value are given (--query, --key, "
            "--value, or a request). A query says what it looks for, a key what it can be found "
            "by, and a value what is given to those who look at its key";
        if (walk.plan.packed && walk.plan.heads > 1)
            words += ", the heads packed side by side in their columns (" +
                     walk.source_of("heads") + ")";
        return walk.page->paragraph(words + ".");
    }
    if (!arrays.has("inputs")) return;  // as the opening states
    walk.page->heading(2, "Input");
    walk.page->paragraph("inputs " + arrays.shape("inputs") + " " + source_of_inputs(walk) +
                         (walk.request.is_next_layer ? ": this is a next layer, with parameters of "
                                                       "its own"
                                                     : "") +
                         ". The query's row, " + std::to_string(walk.plan.d_in) +
                         (walk.plan.d_in == 1 ? " number:" : " numbers:"));
    std::vector<std::string> lines;
    if (arrays.has("token_ids")) {
        const double id = arrays.number("token_ids", 0);
        lines.push_back(walk.place("token_ids") + " = " +
                        std::to_string(static_cast<std::int64_t>(id)));
    }
    lines.push_back(walk.vector_line(walk.place("inputs"), arrays.row("inputs"), "d_in"));
    walk.page->formula(lines);
    if (const std::string words = embedding_words(walk); !words.empty())
        walk.page->paragraph(words);
    walk.draw("inputs", 0, "The input, a row for each token");
    if (arrays.has("normed_inputs")) walk_norm(walk);
}

std::string source_of_weights(const Walk& walk) {
    const Settings& s = walk.settings();
    if (walk.request.has("weights"))
        return "The parameters are read from " + walk.operand_source("weights") + ".";
    if (!walk.draws_parameters()) return "The parameters are the result's.";
    const std::string init =
        walk.request.has("init")
            ? walk.source_of("init")
            : "--init " + std::string(name_of(init_names, s.init)) + ", the default";
    std::string words = "The parameters are drawn (" + init + "; " + walk.seed_source();
    if (s.rng_skip != 0) words += "; " + walk.source_of("rng_skip");
    return words + ").";
}

/// Whether each element of the output comes from a row or a column of a parameter.
std::string line_of(const Walk& walk, std::string_view name) {
    return walk.arrays.find(name)->axes.back() == "d_in" ? "row" : "column";
}

/// Shows the parameters as numbers if they are small.
void show_parameters(Walk& walk) {
    constexpr std::size_t most_rows = 8, most_columns = 8;
    std::vector<std::string> lines;
    for (const char* name :
         {"W_query", "b_query", "W_key", "b_key", "W_value", "b_value", "W_out", "b_out"}) {
        if (!walk.arrays.has(name)) continue;
        const std::vector<std::size_t> sizes = walk.arrays.sizes(name);
        const bool is_matrix = name[0] == 'W';
        const std::size_t matrices = sizes.size() == (is_matrix ? 3u : 2u) ? sizes[0] : 1;
        const std::size_t rows = is_matrix ? sizes[sizes.size() - 2] : 1;
        if (matrices * rows > most_rows || sizes.back() > most_columns) continue;
        const std::vector<Row> all = walk.arrays.rows(name);
        for (std::size_t i = 0; i < all.size(); ++i) {
            std::string place = name;
            if (matrices > 1) place += "[head " + std::to_string(i / rows) + "]";
            if (is_matrix) place += "[" + std::to_string(i % rows) + "]";
            lines.push_back(place + " = " + walk.words.row(all[i]));
        }
    }
    if (!lines.empty()) walk.page->details("The parameters as numbers", lines);
    for (const auto& [name, made] : {std::pair("W_query", "the query"),
                                     {"W_key", "the key"},
                                     {"W_value", "the value"},
                                     {"W_out", "the context vector"}})
        if (walk.arrays.has(name))
            walk.draw(
                name, walk.first_head,
                std::string(name) + ": " + line_of(walk, name) + " i makes number i of " + made);
}

void show_projections(Walk& walk) {
    if (!row_of(walk.settings().mode).projects) return;
    const WalkArrays& arrays = walk.arrays;
    walk.page->heading(2, "Projections");
    const bool is_cross = row_of(walk.settings().mode).context;
    walk.page->paragraph(
        std::string(is_cross ? "Each token of the input has a query, and each token of the context "
                               "a key and a value"
                             : "Each token has a query, a key and a value") +
        ": vectors that are made from its row. The query says what the token looks for, a key what "
        "a token can be found by, and a value what it gives to those who look at it.");
    const std::string context = is_cross ? " Keys and values are made from the context (" +
                                               walk.operand_source("context") + ")."
                                         : "";
    if (!arrays.has("W_query") && walk.settings().init != Init::none)
        return walk.page->paragraph("The result does not have W_query." + context);
    if (!arrays.has("W_query"))
        return walk.page->paragraph(
            "There are none (" + walk.source_of("init") +
            "): queries, keys and values are the rows themselves, and each head takes " +
            (walk.settings().style == Style::wrapper ? "all" : "its own part") + " of them." +
            context);
    const char* x = arrays.has("normed_inputs") ? "normed_inputs" : "inputs";
    const char* source = is_cross ? "context" : x;
    io::Cells cells{{"parameter", "shape", "is used", "and gives"}};
    for (const auto& [name, from, to] : {std::tuple("query", x, "queries"),
                                         {"key", source, "keys"},
                                         {"value", source, "values"},
                                         {"out", "the joined heads", "context_vectors"}})
        for (const std::string start : {"W_", "b_"})
            if (const std::string parameter = start + name; arrays.has(parameter))
                cells.push_back({parameter, arrays.shape(parameter),
                                 start == "W_" ? std::string("times ") + from : "is added", to});
    std::string words = source_of_weights(walk) + context;
    words += walk.plan.parameters.qkv_bias
                 ? " Biases are added."
                 : " Queries, keys and values have no biases" +
                       std::string(walk.draws_parameters() ? " (--qkv-bias adds them)." : ".");
    walk.page->paragraph(words);
    walk.page->table({.cells = cells, .may_split = true});
    const std::string line = line_of(walk, "W_query");
    std::string made = std::string(line == "row" ? "Row" : "Column") +
                       " i of W_query makes number i of the query" +
                       (line == "row" ? ", as in nn.Linear" : "");
    if (walk.plan.heads > 1)
        made += walk.settings().style == Style::wrapper
                    ? ". Each head has parameters of its own (" + walk.source_of("style") + ")"
                    : ", all heads side by side: each head takes its own d_k or d_v numbers";
    walk.page->paragraph(made + ".");
    show_parameters(walk);
}

/// The outputs of all heads, concatenated.
Row joined_heads(const Walk& walk) {
    Row joined;
    for (std::size_t head = 0; head < walk.plan.heads; ++head)
        for (double value : walk.arrays.row("head_outputs", head)) joined.push_back(value);
    return joined;
}

void show_output_projection(Walk& walk, const Row& joined, const Row& context) {
    const WalkArrays& arrays = walk.arrays;
    walk.page->heading(2, "Output projection");
    walk.page->paragraph("The joined row (" + sized("heads * d_v", joined.size()) +
                         ") times W_out " + arrays.shape("W_out") +
                         (arrays.has("b_out")
                              ? " plus b_out " + arrays.shape("b_out")
                              : ", without a bias (" + walk.source_of("out_bias") + ")") +
                         ". The first number in full:");
    std::vector<std::string> lines;
    for (std::size_t out = 0; out < context.size(); ++out) {
        SumOfProducts sum;
        const Row column = arrays.weights_of("W_out", 0, out);
        for (std::size_t i = 0; i < joined.size(); ++i)
            sum.factors.emplace_back(joined[i], column[i]);
        if (arrays.has("b_out")) sum.bias = arrays.row("b_out")[out];
        const std::string written = walk.words.sum(sum, context[out], "context_vectors");
        if (out == 0) lines.push_back(walk.place("context_vectors") + "[0] = " + written);
    }
    walk.page->formula(lines);
}

/// Computed vectors always agree; those of a file may come from another program.
[[noreturn]] void refuse_context(const Walk& walk, const char* expected) {
    if (!walk.is_result())
        throw std::logic_error(std::string("the context vector is not ") + expected);
    throw Error(ErrorKind::input, walk.source.file,
                std::string("has context_vectors that are not ") + expected +
                    ", head_outputs; expected the arrays of one result");
}

}  // namespace

void walk_to_heads(Walk& walk) {
    walk.page->heading(1, "Query " + walk.query_label() + " of " + walk.command());
    walk_answer(walk);
    show_question(walk);
    show_input(walk);
    show_projections(walk);
}

namespace {

/// The context vectors, without the sums that they consist of.
std::vector<std::string> context_lines(const Walk& walk, bool is_joined) {
    std::vector<std::string> lines;
    const std::size_t first = walk.first_head, end = is_joined ? first + 1 : walk.end_head;
    lines.reserve(end - first);
    for (std::size_t head = first; head < end; ++head)
        lines.push_back(walk.vector_line(walk.place("context_vectors", head),
                                         walk.arrays.row("context_vectors", head),
                                         is_joined ? "d_out" : "d_v"));
    return lines;
}

/// Shows the concatenated heads and their projection, and requires that they give the context
/// vector.
void show_joined(Walk& walk, bool is_joined) {
    const Row joined = joined_heads(walk);
    const Row context = is_joined ? walk.arrays.row("context_vectors") : joined;
    const bool projects =
        walk.arrays.has("W_out") && (walk.arrays.has("b_out") || !walk.plan.parameters.out_bias);
    if (is_joined && walk.plan.heads > 1) {
        walk.page->heading(2, "Joined heads");
        walk.page->paragraph("The head_outputs of all " + std::to_string(walk.plan.heads) +
                             " heads, each of " + sized("d_v", walk.plan.d_v) + ", side by side:");
        walk.page->formula({walk.vector_line("joined[" + std::to_string(walk.query()) + "]", joined,
                                             "heads * d_v")});
    }
    if (projects) show_output_projection(walk, joined, context);
    for (std::size_t head = walk.first_head; !is_joined && head < walk.end_head; ++head) {
        const Row of_head = walk.arrays.row("context_vectors", head);
        if (of_head != walk.arrays.row("head_outputs", head) && of_head == of_head)
            refuse_context(walk, "the head's output");
    }
    // A file may lack W_out.
    const bool is_projected = projects || walk.plan.parameters.out_proj;
    if (is_joined && !is_projected && context != joined && context == context)
        refuse_context(walk, "the joined heads");
}

void show_check(Walk& walk, bool is_joined) {
    if (walk.is_result())
        return walk.page->paragraph(
            "Check: each sum above makes the number that the result has, about: it may be rounded, "
            "and kernels add up in another order.");
    const bool joins = is_joined && walk.plan.heads > 1;
    walk.page->paragraph(std::string("Check: the weighted sums of the values") +
                         (walk.arrays.has("W_out") ? ", joined and projected,"
                          : joins                  ? ", joined,"
                                                   : "") +
                         " are the context_vectors that " + walk.command() +
                         " computes, to the last bit. That command with --token " +
                         std::to_string(walk.query()) +
                         " --emit all writes the arrays; those that it does not write are steps "
                         "between them, which only this page shows.");
}

}  // namespace

void walk_from_heads(Walk& walk) {
    const bool is_joined = row_of(walk.settings().mode).projects || walk.plan.packed;
    if (walk.arrays.has("context_vectors")) {
        const bool has_heads = walk.arrays.has("head_outputs");
        if (has_heads) show_joined(walk, is_joined);
        walk.page->heading(2, "Context vector");
        walk.page->formula(context_lines(walk, is_joined));
        walk.page->paragraph(ending_words(walk));
        if (has_heads) show_check(walk, is_joined);
    }
    show_sizes(walk);
}

}  // namespace attn::cli
