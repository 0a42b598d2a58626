// The explanation before and after the heads: question, input, projections, output.
#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "cli/explain/explanation.hpp"
#include "cli/request/options.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

void show_question(Explanation& e) {
    const Plan& g = e.plan;
    const std::string input = e.draws_inputs()  ? "the input"
                              : e.draws_words() ? "the words' rows"
                                                : "";
    if (e.draws_parameters() || !input.empty()) {
        std::string what = e.draws_parameters() ? "The parameters" : "";
        if (!input.empty()) what += (what.empty() ? "" : " and ") + input;
        what[0] = 'T';
        const bool is_one = what == "The input";
        e.page->paragraph(what + (is_one ? " consists of" : " are") +
                          " random numbers, not learned: the " +
                          (e.plan.rule ? "weights" : "percentages") +
                          " show how attention is computed, not what a trained model looks at.");
    }
    const bool is_given = e.request.has("token");
    std::string words =
        "This is query " + e.query_label() + " of " + std::to_string(g.q_len) +
        ", counted from 0 (" +
        (is_given                ? e.source_of("token")
         : e.request.has("rows") ? "in the middle of " + e.source_of("rows")
                                 : "by default; --token I or --token LABEL shows another") +
        ").";
    if (g.batch > 1)
        words += " Batch entry " + std::to_string(e.batch) + " of " + std::to_string(g.batch) +
                 " is shown (--batch B shows another).";
    if (e.end_head - e.first_head != g.heads)
        words += " Head " + std::to_string(e.first_head) + " of " + std::to_string(g.heads) +
                 " is shown (--head H shows another).";
    e.page->paragraph(words);
    if (!e.is_result()) return;
    std::string file = "The numbers are those of " + io::one_line(e.source.file);
    if (!e.source.lacking.empty())
        file += ". They are not computed again, and steps that it does not have are left out: " +
                e.source.lacking;
    if (!e.source.is_stored) file += ", computed again from its settings and operands";
    e.page->paragraph(file + ".");
}

void show_sizes(Explanation& e) {
    const Plan& g = e.plan;
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
    e.page->paragraph("Sizes, d_k and d_v being those of one head: " + sizes + ". Numbers are " +
                      std::string(name_of(dtype_names, e.settings().dtype)) + " (" +
                      e.source_of("dtype") + "), rounded to " +
                      std::to_string(e.format.decimals()) +
                      (e.format.decimals() == 1 ? " digit" : " digits") +
                      " after the point on this page only (--precision).");
}

std::string source_of_inputs(const Explanation& e) {
    const Request& request = e.request;
    if (request.example && !request.text)
        return "come from --example " + io::one_line(*request.example);
    if (e.draws_inputs()) {
        const bool is_normal = !e.settings().randn.empty();
        return std::string("are drawn at random, ") +
               (is_normal ? "from a standard normal distribution (" : "uniformly from 0 to 1 (") +
               e.source_of(is_normal ? "randn" : "rand") + "; " + e.seed_source() + ")";
    }
    if (request.text)
        return "are drawn at random, a row for each word (" + e.source_of("embed_seed") + ")";
    if (!request.token_ids.empty()) return "come from --token-ids and the model of --weights";
    if (e.is_result()) return "come from the result";
    if (!request.has("inputs")) return "come from INPUT";
    return std::string("come from ") +
           (request.is_next_layer ? "the context_vectors of the earlier result " : "") +
           e.source_of("inputs");
}

/// The rows of the tables that a model adds up for a token.
std::string embedding_words(const Explanation& e) {
    const io::Family* family = e.request.family;
    if (family == nullptr || !e.arrays.has("token_ids") || e.draws_words()) return "";
    const io::EmbeddingNames& names = family->embedding;
    const double id = e.arrays.number("token_ids", 0);
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
               std::to_string(e.plan.past_len + e.query() + e.request.position_offset.value_or(0)),
               "position"}}) {
        if (part.table.empty()) continue;
        rows += (rows.empty() ? "" : " + ") + std::string(part.table) + "[" + part.row + "]";
        if (whats.empty() && e.request.embedding_scale)
            rows += " * " + setting_text(*e.request.embedding_scale);
        whats += (whats.empty() ? "its " : ", ") + std::string(part.what);
    }
    return "In the model this row is " + rows + ", by " + whats +
           (names.norm.empty() ? "" : ", and then the norm " + std::string(names.norm)) +
           (e.settings().rope ? "; positions come in by the rotary embedding." : ".");
}

void show_input(Explanation& e) {
    const TraceArrays& arrays = e.arrays;
    if (!e.source.layer.empty()) {
        e.page->heading(2, "Input");
        return e.page->paragraph(
            "Queries, keys and values are those of the layer, after its projections, its norms and "
            "a rotary embedding, as far as it has them. A query says what it looks for, a key what "
            "it can be found by, and a value what is given to those who look at its key.");
    }
    if (!e.plan.projects) {
        e.page->heading(2, "Input");
        std::string words =
            "The bare operator has no projections: query, key and value are given (--query, --key, "
            "--value, or a request). A query says what it looks for, a key what it can be found "
            "by, and a value what is given to those who look at its key";
        if (e.plan.packed && e.plan.heads > 1)
            words +=
                ", the heads packed side by side in their columns (" + e.source_of("heads") + ")";
        return e.page->paragraph(words + ".");
    }
    if (!arrays.has("inputs")) return;  // as the opening states
    e.page->heading(2, "Input");
    e.page->paragraph("inputs " + arrays.shape("inputs") + " " + source_of_inputs(e) +
                      (e.request.is_next_layer ? ": this is a next layer, with parameters of "
                                                 "its own"
                                               : "") +
                      ". The query's row, " + std::to_string(e.plan.d_in) +
                      (e.plan.d_in == 1 ? " number:" : " numbers:"));
    std::vector<std::string> lines;
    if (arrays.has("token_ids")) {
        const double id = arrays.number("token_ids", 0);
        lines.push_back(e.place("token_ids") + " = " +
                        std::to_string(static_cast<std::int64_t>(id)));
    }
    lines.push_back(e.vector_line(e.place("inputs"), arrays.row("inputs"), "d_in"));
    e.page->formula(lines);
    if (const std::string words = embedding_words(e); !words.empty()) e.page->paragraph(words);
    e.draw("inputs", 0, "The input, a row for each token");
    if (arrays.has("normed_inputs")) write_norm(e);
}

std::string source_of_weights(const Explanation& e) {
    const Settings& s = e.settings();
    if (e.request.has("weights"))
        return "The parameters are read from " + e.operand_source("weights") + ".";
    if (!e.draws_parameters()) return "The parameters are the result's.";
    const std::string init =
        e.request.has("init")
            ? e.source_of("init")
            : "--init " + std::string(name_of(init_names, s.init)) + ", the default";
    std::string words = "The parameters are drawn (" + init + "; " + e.seed_source();
    if (s.rng_skip != 0) words += "; " + e.source_of("rng_skip");
    return words + ").";
}

/// Whether each element of the output comes from a row or a column of a parameter.
std::string line_of(const Explanation& e, std::string_view name) {
    return e.arrays.find(name)->axes.back() == "d_in" ? "row" : "column";
}

/// Shows the parameters as numbers if they are small.
void show_parameters(Explanation& e) {
    constexpr std::size_t max_rows = 8, max_columns = 8;
    std::vector<std::string> lines;
    for (const char* name :
         {"W_query", "b_query", "W_key", "b_key", "W_value", "b_value", "W_out", "b_out"}) {
        if (!e.arrays.has(name)) continue;
        const std::vector<std::size_t> sizes = e.arrays.sizes(name);
        const bool is_matrix = name[0] == 'W';
        const std::size_t matrices = sizes.size() == (is_matrix ? 3u : 2u) ? sizes[0] : 1;
        const std::size_t rows = is_matrix ? sizes[sizes.size() - 2] : 1;
        if (matrices * rows > max_rows || sizes.back() > max_columns) continue;
        const std::vector<Row> all = e.arrays.rows(name);
        for (std::size_t i = 0; i < all.size(); ++i) {
            std::string place = name;
            if (matrices > 1) place += "[head " + std::to_string(i / rows) + "]";
            if (is_matrix) place += "[" + std::to_string(i % rows) + "]";
            lines.push_back(place + " = " + e.format.row(all[i]));
        }
    }
    if (!lines.empty()) e.page->details("The parameters as numbers", lines);
    for (const auto& [name, made] : {std::pair("W_query", "the query"),
                                     {"W_key", "the key"},
                                     {"W_value", "the value"},
                                     {"W_out", "the context vector"}})
        if (e.arrays.has(name))
            e.draw(name, e.first_head,
                   std::string(name) + ": " + line_of(e, name) + " i makes number i of " + made);
}

void show_projections(Explanation& e) {
    if (!e.plan.projects) return;
    const TraceArrays& arrays = e.arrays;
    e.page->heading(2, "Projections");
    const bool is_cross = row_of(e.settings().mode).context;
    e.page->paragraph(
        std::string(is_cross ? "Each token of the input has a query, and each token of the context "
                               "a key and a value"
                             : "Each token has a query, a key and a value") +
        ": vectors that are made from its row. The query says what the token looks for, a key what "
        "a token can be found by, and a value what it gives to those who look at it.");
    const std::string context = is_cross ? " Keys and values are made from the context (" +
                                               e.operand_source("context") + ")."
                                         : "";
    if (!arrays.has("W_query") && e.settings().init != Init::none)
        return e.page->paragraph("The result does not have W_query." + context);
    if (!arrays.has("W_query"))
        return e.page->paragraph(
            "There are none (" + e.source_of("init") +
            "): queries, keys and values are the rows themselves, and each head takes " +
            (e.settings().style == Style::wrapper ? "all" : "its own part") + " of them." +
            context);
    const char* x = arrays.has("normed_inputs") ? "normed_inputs" : "inputs";
    const char* source = is_cross ? "context" : x;
    io::Cells cells{{"parameter", "shape", "is used", "and gives"}};
    for (const auto& [name, from, to] : {std::tuple("query", x, "queries"),
                                         {"key", source, "keys"},
                                         {"value", source, "values"},
                                         {"out", "the concatenated heads", "context_vectors"}})
        for (const std::string start : {"W_", "b_"})
            if (const std::string parameter = start + name; arrays.has(parameter))
                cells.push_back({parameter, arrays.shape(parameter),
                                 start == "W_" ? std::string("times ") + from : "is added", to});
    std::string words = source_of_weights(e) + context;
    words += e.plan.parameters.qkv_bias
                 ? " Biases are added."
                 : " Queries, keys and values have no biases" +
                       std::string(e.draws_parameters() ? " (--qkv-bias adds them)." : ".");
    e.page->paragraph(words);
    e.page->table({.cells = cells, .may_split = true});
    const std::string line = line_of(e, "W_query");
    std::string made = std::string(line == "row" ? "Row" : "Column") +
                       " i of W_query makes number i of the query" +
                       (line == "row" ? ", as in nn.Linear" : "");
    if (e.plan.heads > 1)
        made += e.settings().style == Style::wrapper
                    ? ". Each head has parameters of its own (" + e.source_of("style") + ")"
                    : ", all heads side by side: each head takes its own d_k or d_v numbers";
    e.page->paragraph(made + ".");
    show_parameters(e);
}

/// The outputs of all heads, concatenated.
Row concatenated_heads(const Explanation& e) {
    Row concatenated;
    for (std::size_t head = 0; head < e.plan.heads; ++head)
        for (double value : e.arrays.row("head_outputs", head)) concatenated.push_back(value);
    return concatenated;
}

void show_output_projection(Explanation& e, const Row& concatenated, const Row& context) {
    const TraceArrays& arrays = e.arrays;
    e.page->heading(2, "Output projection");
    e.page->paragraph("The concatenated row (" + sized("heads * d_v", concatenated.size()) +
                      ") times W_out " + arrays.shape("W_out") +
                      (arrays.has("b_out") ? " plus b_out " + arrays.shape("b_out")
                                           : ", without a bias (" + e.source_of("out_bias") + ")") +
                      ". The first number in full:");
    std::vector<std::string> lines;
    for (std::size_t out = 0; out < context.size(); ++out) {
        SumOfProducts sum;
        const Row column = arrays.weights_of("W_out", 0, out);
        for (std::size_t i = 0; i < concatenated.size(); ++i)
            sum.factors.emplace_back(concatenated[i], column[i]);
        if (arrays.has("b_out")) sum.bias = arrays.row("b_out")[out];
        const std::string written = e.format.sum(sum, context[out]);
        if (out == 0) lines.push_back(e.place("context_vectors") + "[0] = " + written);
    }
    e.page->formula(lines);
}

}  // namespace

void write_before_heads(Explanation& e) {
    e.page->heading(1, "Query " + e.query_label() + " of " + e.command());
    write_answer(e);
    show_question(e);
    show_input(e);
    show_projections(e);
}

namespace {

/// The context vectors, without the sums that they consist of.
std::vector<std::string> context_lines(const Explanation& e, bool is_concatenated) {
    std::vector<std::string> lines;
    const std::size_t first = e.first_head, end = is_concatenated ? first + 1 : e.end_head;
    lines.reserve(end - first);
    for (std::size_t head = first; head < end; ++head)
        lines.push_back(e.vector_line(e.place("context_vectors", head),
                                      e.arrays.row("context_vectors", head),
                                      is_concatenated ? "d_out" : "d_v"));
    return lines;
}

/// Shows the concatenated heads and their projection, and requires that they give the context
/// vector.
void show_concatenated(Explanation& e, bool is_concatenated) {
    const Row concatenated = concatenated_heads(e);
    const Row context = is_concatenated ? e.arrays.row("context_vectors") : concatenated;
    const bool projects =
        e.arrays.has("W_out") && (e.arrays.has("b_out") || !e.plan.parameters.out_bias);
    if (is_concatenated && e.plan.heads > 1) {
        e.page->heading(2, "Concatenated heads");
        e.page->paragraph("The head_outputs of all " + std::to_string(e.plan.heads) +
                          " heads, each of " + sized("d_v", e.plan.d_v) + ", side by side:");
        e.page->formula({e.vector_line("concatenated[" + std::to_string(e.query()) + "]",
                                       concatenated, "heads * d_v")});
    }
    if (projects) show_output_projection(e, concatenated, context);
}

void show_check(Explanation& e, bool is_concatenated) {
    if (e.source.is_stored) return;
    const bool concatenates = is_concatenated && e.plan.heads > 1;
    e.page->paragraph(std::string(e.plan.rule ? "Check: what the queries read"
                                              : "Check: the weighted sums of the values") +
                      (e.arrays.has("W_out") ? ", concatenated and projected,"
                       : concatenates        ? ", concatenated,"
                                             : "") +
                      " are the context_vectors that " + e.command() +
                      " computes, to the last bit. That command with --token " +
                      std::to_string(e.query()) +
                      " --emit all writes the arrays; those that it does not write are steps "
                      "between them, which only this page shows.");
}

}  // namespace

void write_after_heads(Explanation& e) {
    const bool is_concatenated = e.plan.projects || e.plan.packed;
    if (e.arrays.has("context_vectors")) {
        const bool has_heads = e.arrays.has("head_outputs");
        if (has_heads) show_concatenated(e, is_concatenated);
        e.page->heading(2, "Context vector");
        e.page->formula(context_lines(e, is_concatenated));
        e.page->paragraph(ending_words(e));
        if (has_heads) show_check(e, is_concatenated);
    } else if (!e.source.layer.empty() && e.arrays.has("head_outputs")) {
        e.page->paragraph("The layer goes on with the head_outputs of all heads, side by side.");
        show_check(e, false);
    }
    show_sizes(e);
}

}  // namespace attn::cli
