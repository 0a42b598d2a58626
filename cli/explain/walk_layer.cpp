// What stands before and after the heads: the question, the input, the projections, the output.
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
    const Settings& s = walk.settings();
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
    const bool is_given = walk.request.has("token");
    std::string words =
        "This is query " + walk.query_label() + " of " + std::to_string(g.q_len) +
        ", counted from 0 (" +
        (is_given ? walk.source("token") : "by default; --token I or --token LABEL shows another") +
        ").";
    if (g.batch > 1)
        words += " Batch entry " + std::to_string(walk.batch) + " of " + std::to_string(g.batch) +
                 " is shown (--batch B shows another).";
    if (walk.end_head - walk.first_head != g.heads)
        words += " Head " + std::to_string(walk.first_head) + " of " + std::to_string(g.heads) +
                 " is shown (--head H shows another).";
    walk.page->paragraph(words);
    if (!walk.result.empty()) {
        std::string file = "The numbers are those of " + io::one_line(walk.result) +
                           "; the page computes nothing again but the steps of the softmax.";
        if (!walk.missing.empty())
            file += " It does not have " + walk.missing + " (--emit all writes them).";
        walk.page->paragraph(file);
    }
    walk.page->paragraph("Sizes, d_k and d_v those of one head: " + sizes + ". Numbers are " +
                         std::string(name_of(dtype_names, s.dtype)) + " (" + walk.source("dtype") +
                         "), rounded to " + std::to_string(walk.words.decimals()) +
                         " digits after the point on this page only (--precision).");
}

std::string source_of_inputs(const Walk& walk) {
    const Request& request = walk.request;
    if (request.example) return "--example " + io::one_line(*request.example);
    if (request.text) return "--text, embedded with --embed-seed";
    if (!request.token_ids.empty()) return "--token-ids, embedded with the model of --weights";
    if (!walk.result.empty()) return io::one_line(walk.result);
    if (!request.has("inputs")) return "INPUT";
    return (request.is_next_layer ? "the context_vectors of the earlier result " : "") +
           walk.source("inputs");
}

void show_input(Walk& walk) {
    const WalkArrays& arrays = walk.arrays;
    walk.page->heading(2, "Input");
    if (!row_of(walk.settings().mode).projects) {
        std::string words =
            "The bare operator has no projections: query, key and value are given (--query, --key, "
            "--value, or a request). A query says what it looks for, a key what it can be found "
            "by, and a value what is given to those who look at its key";
        if (walk.plan.packed && walk.plan.heads > 1)
            words +=
                ", the heads packed side by side in their columns (" + walk.source("heads") + ")";
        return walk.page->paragraph(words + ".");
    }
    if (!arrays.has("inputs")) return walk.page->paragraph("The result does not have its inputs.");
    walk.page->paragraph("inputs " + arrays.shape("inputs") + " come from " +
                         source_of_inputs(walk) +
                         (walk.request.is_next_layer ? ": this is a next layer, with parameters of "
                                                       "its own"
                                                     : "") +
                         ". The query's row, one number for each of d_in:");
    std::vector<std::string> lines;
    if (arrays.has("token_ids")) {
        const double id = arrays.number("token_ids", 0);
        lines.push_back("token_ids[" + std::to_string(walk.query()) +
                        "] = " + std::to_string(static_cast<std::int64_t>(id)));
    }
    lines.push_back(walk.vector_line("inputs", arrays.row("inputs"), "d_in"));
    walk.page->formula(lines);
    walk.draw("inputs", 0, "The input, a row for each token; ▶ marks the row of this one.");
    if (!arrays.has("normed_inputs")) return;
    walk.page->paragraph("The model's norm is applied to each row before the layer (" +
                         (walk.request.has("pre_norm") ? walk.source("pre_norm")
                                                       : std::string("default with --token-ids")) +
                         "):");
    walk.page->formula({walk.vector_line("normed_inputs", arrays.row("normed_inputs"), "d_in")});
}

std::string source_of_weights(const Walk& walk) {
    const Settings& s = walk.settings();
    if (walk.request.has("weights"))
        return "The parameters are read from " + walk.operand_source("weights") + ".";
    const std::string init =
        walk.request.has("init")
            ? walk.source("init")
            : "--init " + std::string(name_of(init_names, s.init)) + ", the default";
    std::string words = "The parameters are drawn (" + init + "; " + walk.seed_source();
    if (s.rng_skip != 0) words += "; " + walk.source("rng_skip");
    return words + ").";
}

/// The parameters as numbers, while they are small.
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
            if (matrices > 1) place += "[" + std::to_string(i / rows) + "]";
            if (is_matrix) place += "[" + std::to_string(i % rows) + "]";
            lines.push_back(place + " = " + walk.words.row(all[i]));
        }
    }
    if (!lines.empty()) walk.page->formula(lines);
    for (const char* name : {"W_query", "W_key", "W_value", "W_out"})
        walk.draw(name, walk.first_head, std::string(name) + ", one colour a number.");
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
        return walk.page->paragraph("The result does not have the parameters." + context);
    if (!arrays.has("W_query"))
        return walk.page->paragraph(
            "There are none (" + walk.source("init") +
            "): queries, keys and values are the rows themselves, and each head takes " +
            (walk.settings().style == Style::wrapper ? "all" : "its own part") + " of them." +
            context);
    const char* x = arrays.has("normed_inputs") ? "normed_inputs" : "inputs";
    const char* source = is_cross ? "context" : x;
    io::Cells cells{{"parameter", "shape", "is applied to", "and gives"}};
    for (const auto& [name, from, to] : {std::tuple("query", x, "queries"),
                                         {"key", source, "keys"},
                                         {"value", source, "values"},
                                         {"out", "the joined heads", "context_vectors"}})
        for (const std::string parameter : {"W_", "b_"})
            if (arrays.has(parameter + name))
                cells.push_back({parameter + name, arrays.shape(parameter + name),
                                 parameter == "W_" ? from : "the product", to});
    std::string words = source_of_weights(walk) + context;
    words += arrays.has("b_query")         ? " Biases are added."
             : walk.request.has("weights") ? " They have no biases."
                                           : " There are no biases (--qkv-bias adds them).";
    walk.page->paragraph(words);
    walk.page->table({cells});
    std::string applied;
    const bool any_transposed = std::any_of(cells.begin(), cells.end(), [](const auto& row) {
        const std::size_t in = row[1].find("d_in");
        return in != std::string::npos && row[1].find("d_out") < in;
    });
    if (any_transposed)
        applied =
            "A weight whose axes are (d_out, d_in) is applied transposed, as nn.Linear does it.";
    if (walk.plan.heads > 1)
        applied += std::string(applied.empty() ? "" : " ") +
                   (walk.settings().style == Style::wrapper
                        ? "Each head has parameters of its own (--style wrapper)."
                        : "Each head takes its own d_k or d_v columns of what comes out.");
    if (!applied.empty()) walk.page->paragraph(applied);
    show_parameters(walk);
}

/// Every head's part of the context, side by side.
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
                              : ", without a bias (" + walk.source("out_bias") + ")") +
                         ". The first number in full:");
    std::vector<std::string> lines;
    for (std::size_t out = 0; out < context.size(); ++out) {
        SumOfProducts sum;
        const Row column = arrays.weights_of("W_out", 0, out);
        for (std::size_t i = 0; i < joined.size(); ++i)
            sum.factors.emplace_back(joined[i], column[i]);
        if (arrays.has("b_out")) sum.bias = arrays.row("b_out")[out];
        const std::string written = walk.words.sum(sum, context[out], "context_vectors");
        if (out == 0)
            lines.push_back("context_vectors[" + std::to_string(walk.query()) +
                            "][0] = " + written);
    }
    walk.page->formula(lines);
}

/// Computed vectors are always the same; those of a file may be anybody's.
[[noreturn]] void refuse_context(const Walk& walk, const char* expected) {
    if (walk.result.empty())
        throw std::logic_error(std::string("the context vector is not ") + expected);
    throw Error(ErrorKind::input, walk.result,
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

void walk_from_heads(Walk& walk) {
    const bool is_joined = row_of(walk.settings().mode).projects || walk.plan.packed;
    const bool projects = walk.arrays.has("W_out");
    const bool is_projected = walk.plan.parameters.out_proj;  // a file may not have W_out
    if (!walk.arrays.has("context_vectors")) return;
    if (!walk.arrays.has("head_outputs")) {
        walk.page->heading(2, "Context vector");
        std::vector<std::string> lines;
        for (std::size_t head = walk.first_head; head < (is_joined ? 1 : walk.end_head); ++head)
            lines.push_back(walk.vector_line("context_vectors",
                                             walk.arrays.row("context_vectors", head),
                                             is_joined ? "d_out" : "d_v"));
        return walk.page->formula(lines);
    }
    const Row joined = joined_heads(walk);
    const Row context = is_joined ? walk.arrays.row("context_vectors") : joined;
    if (is_joined && walk.plan.heads > 1) {
        walk.page->heading(2, "Joined heads");
        walk.page->paragraph("The head_outputs of all " + std::to_string(walk.plan.heads) +
                             " heads, each of " + sized("d_v", walk.plan.d_v) + ", side by side:");
        walk.page->formula({walk.vector_line("joined", joined, "heads * d_v")});
    }
    if (projects) show_output_projection(walk, joined, context);
    walk.page->heading(2, "Context vector");
    std::vector<std::string> lines;
    if (is_joined) lines.push_back(walk.vector_line("context_vectors", context, "d_out"));
    for (std::size_t head = walk.first_head; !is_joined && head < walk.end_head; ++head) {
        const Row of_head = walk.arrays.row("context_vectors", head);
        if (of_head != walk.arrays.row("head_outputs", head) && of_head == of_head)
            refuse_context(walk, "the head's output");
        lines.push_back((walk.plan.heads > 1 ? "head " + std::to_string(head) + ": " : "") +
                        walk.vector_line("context_vectors", of_head, "d_v"));
    }
    if (is_joined && !projects && !is_projected && context != joined && context == context)
        refuse_context(walk, "the joined heads");
    walk.page->formula(lines);
    if (!walk.result.empty())
        return walk.page->paragraph(
            "Check: each sum above makes the number that the result has, about: it may be rounded, "
            "and kernels add up in another order.");
    walk.page->paragraph(std::string("Check: the weighted sums of the values") +
                         (projects                           ? ", joined and projected,"
                          : is_joined && walk.plan.heads > 1 ? ", joined,"
                                                             : "") +
                         " are the context_vectors that " + walk.command() +
                         " computes, to the last bit. That command with --token " +
                         std::to_string(walk.query()) +
                         " --emit all writes the arrays; unrotated_, allowed_by_, softmax_ and "
                         "the like are steps "
                         "between them that only this page shows.");
}

}  // namespace attn::cli
