// The rows of the modes are here; each other command has its row in its own module.
#include "cli/commands.hpp"

#include "cli/mpi/communicator.hpp"
#include "cli/request/request.hpp"

namespace attn::cli {
namespace {

constexpr const char* input_of_operator =
    "a request as JSON, or npz or safetensors, with query, key and value; - or nothing: standard "
    "input";
constexpr const char* input_of_layer =
    "a matrix, a batch, a request or an earlier result, as json, ndjson, csv, npy, npz or "
    "safetensors (FILE:NAME picks one of several arrays, FILE:float32:2x3 reads bare numbers); - "
    "or nothing: standard input";

/// The common flags. A mode's short help shows the first 12 that it accepts.
constexpr HelpOverride common_mode_flags[] = {
    {"query", "file of the queries"},
    {"key", "file of the keys"},
    {"value", "file of the values"},
    {"context", "file that keys and values are made from"},
    {"d_out", "width of the context vectors (default d_in)"},
    {"heads", "number of heads (default 1)"},
    {"kv_heads", "heads of keys and values (default as many)"},
    {"causal", "see no later tokens, or see all"},
    {"rule", "update of the state (default as decay and beta)"},
    {"decay", "log of the state's decay: a file or constants"},
    {"beta", "rate of the delta rule: a file or constants"},
    {"mask", "file of a boolean or additive mask"},
    {"seed", "the generator's, as torch.manual_seed (default 0)"},
    {"weights", "parameters from a model's file or folder"},
    {"layer", "layer of the model (default 0)"},
    {"token_ids", "embed these tokens with the model instead of INPUT"},
    {"emit", "arrays to write, as scores,context_vectors, or all"},
    {"format", "json, table, torch, csv, npy, npz, ..."},
    {"output", "write there; the suffix says the format"},
    {"token", "one query row only, from 0 or by its label"},
    {"dropout", "probability of dropping a weight (default 0)"},
    {"heatmap", "draw the weights on the terminal"},
};

constexpr CommandRow of_mode(Mode mode, const char* summary, const char* examples) {
    const ModeRow& row = row_of(mode);
    return {.name = row.name,
            .summary = summary,
            .examples = examples,
            .input = row.source == Source::operands ? input_of_operator : input_of_layer,
            .common_flags = common_mode_flags,
            .mode = &row,
            .takes = as_flag,
            .run = run_mode};
}

constexpr CommandRow self_command = of_mode(
    Mode::self, "one head, every token attends to every token",
    "  attn self --example journey --d-out 2 --seed 789\n"
    "  attn self tokens.csv --init none --format table\n"
    "  attn self --text \"Life is short, eat dessert first\" --embed-seed 123 --format torch\n");
constexpr CommandRow causal_command =
    of_mode(Mode::causal, "one head, a token attends to itself and to the tokens before it",
            "  attn causal --example journey --d-out 2 --seed 789 --format torch\n"
            "  attn causal tokens.json --dropout 0.5 --seed 123 -o result.json\n"
            "  attn self tokens.json | attn causal - --emit scores,mask,attention_weights\n");
constexpr CommandRow multihead_command =
    of_mode(Mode::multihead, "h heads, causal unless --no-causal, output projection",
            "  attn multihead --example pair --heads 2 --seed 789\n"
            "  attn multihead tokens.json --heads 4 --init mha --no-causal --qkv-bias\n"
            "  attn multihead tokens.csv --heads 2 --style wrapper --d-out 2 --format table\n");
constexpr CommandRow cross_command =
    of_mode(Mode::cross, "queries from INPUT, keys and values from --context",
            "  attn cross tokens.csv --context tokens.json --d-out 4\n"
            "  attn cross tokens.json --context tokens.json --heads 2 --causal --format table\n");
constexpr CommandRow sdpa_command = of_mode(
    Mode::sdpa, "the bare operator softmax(scale Q K^T + bias) V, no projections",
    "  attn sdpa --query q.json --key k.json --value v.json\n"
    "  attn sdpa --query q.json --key k.json --value v.json --causal --window 1 --softcap 30\n"
    "  echo '{\"query\": [[1]], \"key\": [[0.1], [0.5]], \"value\": [[0], [1]]}' | attn sdpa\n");

constexpr CommandRow linear_command = of_mode(
    Mode::linear, "attention without a softmax: linear, gated or delta rule",
    "  attn linear --example journey --d-out 2 --decay -0.1\n"
    "  attn linear --query q.npy --key k.npy --value v.npy --decay g.npy --beta b.npy --qk-norm\n"
    "  attn linear request.json --past-state earlier.json:present_state --emit present_state\n");

constexpr const CommandRow* all_commands[] = {
    &self_command,    &causal_command, &multihead_command, &cross_command,   &sdpa_command,
    &linear_command,  &model_command,  &tokenize_command,  &batch_command,   &scan_command,
    &partial_command, &merge_command,  &explain_command,   &compare_command, &check_command,
    &repro_command,   &plot_command,   &inspect_command,   &help_command,    &completion_command};

constexpr CommandGroup command_groups[] = {{&self_command, "Compute"},
                                           {&model_command, "Models"},
                                           {&batch_command, "Many requests, texts or processes"},
                                           {&explain_command, "Examine results"},
                                           {&inspect_command, "Files and help"}};

std::string version() {
    return version_text() + "MPI: " + mpi_library() + "\n";
}

}  // namespace

const Program& attn_program() {
    static const Program program{
        .summary = "attention from the shell, with PyTorch's numbers",
        .examples =
            "  attn self --example journey --d-out 2 --seed 789 --format torch\n"
            "  attn explain self --example journey --token 1\n",
        .version = version,
        .commands = all_commands,
        .groups = command_groups,
        .options = options()};
    return program;
}

}  // namespace attn::cli
