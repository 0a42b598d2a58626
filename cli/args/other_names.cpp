#include "cli/args/other_names.hpp"

#include <cctype>
#include <cstddef>

#include "core/base/did_you_mean.hpp"

namespace attn::cli {
namespace {

/// Names of one option, as listed.
struct OtherNames {
    std::string_view key;
    std::string_view names;
};

constexpr OtherNames other_names[] = {
    {"heads",
     " num_heads n_heads nheads num_head n_head nhead num_attention_heads attention_heads "
     "q_num_heads h "},
    {"kv_heads",
     " num_kv_heads n_kv_heads num_key_value_heads kv_num_heads key_heads groups num_groups "
     "enable_gqa gqa mqa "},
    {"causal",
     " is_causal unidirectional masked autoregressive decoder causal_mask mask_future "
     "look_ahead_mask "},
    {"mask", " attn_mask attn_bias bias_mask attention_bias "},
    {"key_padding_mask", " padding_mask attention_mask pad_mask "},
    {"kv_lengths", " lengths seqlens seq_lens seqlen_k nonpad_kv_seqlen cache_seqlens "},
    {"dropout", " dropout_p p attn_dropout attention_dropout dropout_rate attn_pdrop "},
    {"scale", " softmax_scale sm_scale scaling scale_factor "},
    {"softcap", " soft_cap logits_soft_cap logit_cap attn_logit_softcapping "},
    {"window", " window_size local_window_size "},
    {"alibi", " use_alibi "},
    {"rope", " rotary rotary_embedding use_rope rotary_interleaved "},
    {"rope_base", " rope_theta theta rotary_base rotary_emb_base "},
    {"rope_dims", " rotary_dim rotary_dims rotary_embedding_dim rotary_pct partial_rotary_factor "},
    {"sink", " sinks attention_sink head_sink smooth_softmax "},
    {"seed", " manual_seed random_seed rng_seed random_state rng "},
    {"weights", " model checkpoint ckpt state_dict safetensors params parameters "},
    {"model_config", " config_json hf_config "},
    {"layer", " layer_idx layer_index layer_id block "},
    {"init", " initializer initialization initialiser "},
    {"token_ids", " input_ids ids tokens_ids "},
    {"rand", " random uniform random_input "},
    {"randn", " normal gaussian random_normal "},
    {"text", " prompt sentence words string "},
    {"embed_dim", " emb_dim embedding_dim n_embd embed_size "},
    {"context_length", " block_size max_len max_length max_seq_len n_ctx "},
    {"context", " memory encoder_hidden_states encoder_output kv_input "},
    {"tokens", " labels token_labels names "},
    {"query", " q queries "},
    {"key", " k keys "},
    {"value", " values "},
    {"past_key", " k_cache key_cache "},
    {"past_value", " v_cache value_cache "},
    {"emit", " arrays print_arrays keep return save_arrays dump "},
    {"resume", " continue restart "},
    {"max_failures", " max_errors "},
    {"output", " output_file out_file outfile save output_path "},
    {"format", " output_format out_format fmt to "},
    {"token", " row query_index position "},
    {"precision", " digits decimals round ndigits "},
    {"csv_header", " header header_row "},
    {"csv_decimal", " decimal decimal_point dec "},
    {"csv_quotes", " quoting quotechar quote "},
    {"pretty", " indent pretty_print "},
    {"average_heads", " average_attn_weights mean_heads avg_heads "},
    {"heatmap", " heat_map draw show "},
    {"plot", " picture image png svg html plot_file figure "},
    {"color_scale", " cmap colormap colors norm "},
    {"dtype", " type data_type torch_dtype "},
    {"kernel", " backend impl implementation attn_implementation "},
    {"threads", " num_threads n_threads nthreads "},
    {"jobs", " workers num_workers parallel "},
};

/// Words of other programs that mean several options, a choice, or none.
struct Explained {
    std::string_view names;
    const char* words;
    std::string_view command = {};  // the only one that the row is for
};

constexpr Explained explained[] = {
    {" array arrays emit only ",
     "name an array in both files: attn compare a.npz:scores b.npz:scores", "compare"},
    {" tolerance tol eps epsilon ",
     "--rtol N and --atol N are the relative and the absolute tolerance", "compare"},
    {" tolerance tol eps epsilon ",
     "--rtol N and --atol N are the relative and the absolute tolerance", "check"},
    {" expected actual theirs other candidate result ",
     "--against FILE names the other program's arrays", "check"},
    {" size width height resolution dpi figsize ",
     "attn chooses the size; an SVG or an HTML page scales", "plot"},
    {" html markdown md text ", "--format html, markdown or text chooses the form", "explain"},
    {" limit count take first ", "head -n N takes the first N requests", "batch"},
    {" shell ", "expected attn completion bash, zsh or fish", "completion"},
    {" meta id ", "it is a key of a request: {\"id\": 7, \"meta\": \"any JSON\", ...}"},
    {" bias no_bias use_bias add_bias attention_bias qkv_biases ",
     "--qkv-bias adds biases to the projections", "self"},
    {" bias no_bias use_bias add_bias attention_bias qkv_biases ",
     "--qkv-bias adds biases to the projections", "causal"},
    {" bias use_bias add_bias attention_bias qkv_biases ",
     "--qkv-bias adds biases to the projections; --no-out-bias removes the output projection's"},
    {" out ", "-o FILE writes the result there; --d-out N is the width of the context vectors"},
    {" json csv tsv npy npz ndjson table torch safe_tensors ",
     "use --format, such as --format json"},
    {" jsonl ", "--format ndjson writes one document per line"},
    {" output_dim out_dim out_features ", "--d-out N is the width of the context vectors"},
    {" dim d_model hidden_size hidden_dim hidden width size embed model_dim features ",
     "--d-out N is the width of the context vectors; the input determines its own width"},
    {" head_dim head_size d_head dim_head head_width ",
     "--d-out N is the total width of all heads: their number times the width of one"},
    {" d_in input_dim in_features ",
     "the input determines it; --d-out N is the width of the context vectors"},
    {" d_key dim_k key_dim kdim ", "--d-k N is the width of queries and keys"},
    {" d_value dim_v value_dim vdim ", "--d-v N is the width of values"},
    {" batch_size batches ", "the input determines it: (batch, tokens, d_in)"},
    {" seq_len seqlen sequence_length length n_tokens num_tokens ",
     "the input determines it: (tokens, d_in)"},
    {" batch_first ", "inputs are always (batch, tokens, d_in)"},
    {" need_weights output_attentions return_weights return_attention weights_only ",
     "the attention weights are written by default; --emit attention_weights writes only them"},
    {" all everything intermediates ", "--emit all writes every array"},
    {" input inputs file input_file infile in i x data matrix ",
     "the input is an argument without a flag: attn MODE FILE, or - for standard input"},
    {" no_mask unmasked ",
     "attn self, cross and sdpa do not mask; --no-causal lifts the mask of attn multihead"},
    {" attention_mask ",
     "attn calls it --key-padding-mask, with --mask-true keep where 1 keeps a key"},
    {" no_causal non_causal bidirectional full ",
     "attn self, cross and sdpa do not mask; attn multihead has --no-causal"},
    {" sliding_window sliding_window_size ",
     "--window LEFT counts the keys before the query: a window of N keys is --window N-1"},
    {" softmax_1 softmax1 off_by_one softmax_plus_one ",
     "--sink 0 adds 1 to the softmax's denominator"},
    {" no_header headerless ", "--csv-header no reads the first row as data"},
    {" delimiter delim sep separator ",
     "attn detects the separator: a comma, a semicolon, a tab or a space"},
    {" temperature temp ",
     "--scale S multiplies the scores by S (default 1/sqrt(d_k)); a temperature T divides S"},
    {" verbose v debug vv ", "attn explain MODE shows every step, attn --version the version"},
    {" quiet q silent ", "attn prints only its result; 2>/dev/null hides its notes"},
    {" version ", "attn --version shows it"},
    {" device cuda gpu cpu mps ", "attn computes on the processor; --threads N, --kernel NAME"},
    {" float64 double fp64 float32 float fp32 ", "use --dtype float32 or float64"},
    {" half fp16 float16 bf16 bfloat16 ",
     "attn reads half precision and computes in --dtype float32 or float64"},
    {" color colour no_color ", "use the environment variables NO_COLOR and CLICOLOR_FORCE"},
    {" force overwrite y yes ", "existing files are replaced anyway"},
    {" dry_run n ", "--dry-run states the cost of a mode, of attn batch or of attn model"},
    {" norm layer_norm layernorm prenorm ", "--pre-norm applies the model's norm"},
};

/// Names of an option's values.
struct OtherValues {
    std::string_view key;
    std::string_view names;
    const char* value;  // or, of refused ones, words
};

constexpr OtherValues other_values[] = {
    {"rope", " neox gpt_neox llama qwen mistral rotate_half ", "half"},
    {"rope", " gptj gpt_j meta complex ", "interleaved"},
    {"dtype", " f64 double fp64 float_64 ", "float64"},
    {"dtype", " f32 float single fp32 float_32 ", "float32"},
    {"init", " uniform random ", "rand"},
    {"init", " torch default pytorch kaiming ", "linear"},
    {"init", " glorot xavier_uniform ", "xavier"},
    {"init", " identity eye ", "none"},
    {"kernel", " ref naive xtensor slow ", "reference"},
    {"kernel", " fused fast simd native ", "auto"},
    {"format", " pytorch tensor ", "torch"},
    {"format", " numpy ", "npy"},
    {"format", " text ascii ", "table"},
    {"format", " jsonl json_lines ", "ndjson"},
    {"format", " excel xlsx spreadsheet ", "csv"},
    {"causal_align", " right bottom end lower_right ", "bottom-right"},
    {"causal_align", " left top start upper_left ", "top-left"},
    {"mask_true", " attend allow visible ", "keep"},
    {"mask_true", " mask masked block ignore ", "drop"},
};

/// Values that no option takes.
constexpr OtherValues refused_values[] = {
    {"dtype", " float16 half fp16 bfloat16 bf16 float8 fp8 ",
     "attn reads half precision and computes in float32 or float64"},
};

constexpr Explained commands_elsewhere[] = {
    {" mha multi_head multi_head_attention multiheadattention heads ", "attn multihead"},
    {" gqa mqa grouped grouped_query ", "attn multihead --kv-heads N"},
    {" attention scaled_dot_product_attention dot_product scaled_dot_product operator flash "
     "flash_attention softmax ",
     "attn sdpa, the bare operator, or attn self, with projections"},
    {" self_attention selfattention self_attn single ", "attn self"},
    {" cross_attention crossattention cross_attn encoder_decoder ", "attn cross"},
    {" masked masked_self decoder causal_attention gpt gpt2 ",
     "attn causal, or attn multihead for several heads"},
    {" version v ", "attn --version"},
    {" man manual ", "attn help, or man attn where it is installed"},
    {" h usage ", "attn --help"},
    {" draw heatmap show picture render visualize image ", "attn plot"},
    {" diff cmp allclose equal ", "attn compare"},
    {" verify validate test judge debug diagnose ", "attn check"},
    {" info ls list cat dump describe summary open ", "attn inspect"},
    {" run serve bulk many ", "attn batch"},
    {" tok tokens tokenise tokenizer encode decode detokenize ", "attn tokenize"},
    {" walk trace steps tutorial why ", "attn explain MODE"},
    {" complete completions ", "attn completion"},
    {" notebook notebooks book ", "attn help notebooks"},
    {" linear_attention linear_attn deltanet gated_deltanet delta_net gla retnet ", "attn linear"},
};

template <class Row, std::size_t N>
const Row* find_row(const Row (&rows)[N], const std::string& listed_word) {
    for (const Row& row : rows)
        if (row.names.find(listed_word) != std::string_view::npos) return &row;
    return nullptr;
}

}  // namespace

std::string as_listed(std::string_view word) {
    std::string text(word.substr(0, 64));
    for (char& c : text)
        c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return " " + text + " ";
}

std::string_view key_of_other_name(const std::string& listed_word) {
    const OtherNames* const row = find_row(other_names, listed_word);
    return row == nullptr ? std::string_view() : row->key;
}

const char* explanation_of(const std::string& listed_word, std::string_view command) {
    for (const Explained& row : explained)
        if (row.command == command && row.names.find(listed_word) != std::string_view::npos)
            return row.words;
    return nullptr;
}

std::string hint_for_value(std::string_view key, const std::string& value,
                           const std::vector<std::string>& values) {
    const std::string listed_word = as_listed(value);
    const auto is_meant = [&](const OtherValues& row) {
        return row.key == key && row.names.find(listed_word) != std::string_view::npos;
    };
    for (const OtherValues& row : refused_values)
        if (is_meant(row)) return std::string("; ") + row.value;
    std::string near = did_you_mean(value, values);
    for (const OtherValues& row : other_values)
        if (is_meant(row)) near = row.value;
    return near.empty() ? near : "; did you mean " + near + "?";
}

const char* command_of_other_name(const std::string& listed_word) {
    const Explained* const row = find_row(commands_elsewhere, listed_word);
    return row == nullptr ? nullptr : row->words;
}

}  // namespace attn::cli
