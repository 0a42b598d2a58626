#include "cli/args/unknown.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "cli/args/help.hpp"
#include "core/base/did_you_mean.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

/// Names of options in PyTorch, ONNX, transformers, FlashAttention and others, in lower case with
/// '_', with a blank before and after each.
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
    {"causal", " is_causal unidirectional masked autoregressive decoder "},
    {"mask", " attn_mask attn_bias bias_mask attention_bias "},
    {"key_padding_mask", " padding_mask attention_mask pad_mask "},
    {"kv_lengths", " lengths seqlens seq_lens seqlen_k nonpad_kv_seqlen cache_seqlens "},
    {"dropout", " dropout_p p attn_dropout attention_dropout dropout_rate attn_pdrop "},
    {"scale", " softmax_scale sm_scale scaling scale_factor "},
    {"softcap", " soft_cap logits_soft_cap logit_cap attn_logit_softcapping "},
    {"window", " window_size local_window_size "},
    {"alibi", " alibi_slopes use_alibi "},
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
    {"query", " q queries "},
    {"key", " k keys "},
    {"value", " values "},
    {"past_key", " k_cache key_cache "},
    {"past_value", " v_cache value_cache "},
    {"emit", " arrays print_arrays keep return save_arrays dump "},
    {"resume", " continue restart "},
    {"output", " output_file out_file outfile save output_path "},
    {"format", " output_format out_format fmt "},
    {"token", " row query_index position "},
    {"precision", " digits decimals round ndigits "},
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
};

constexpr Explained explained[] = {
    {" bias use_bias add_bias attention_bias qkv_biases ",
     "--qkv-bias adds biases to the projections; --no-out-bias leaves out that of the output"},
    {" out ", "-o FILE writes the result there; --d-out N is the width of the context vectors"},
    {" json csv tsv npy npz ndjson table torch safe_tensors ",
     "use --format, such as --format json"},
    {" jsonl ", "--format ndjson writes one document per line"},
    {" output_dim out_dim out_features ", "--d-out N is the width of the context vectors"},
    {" dim d_model hidden_size hidden_dim hidden width size embed model_dim features ",
     "--d-out N is the width of the context vectors; the input determines its own width"},
    {" head_dim head_size d_head dim_head head_width ",
     "--d-out N is the width of all heads together: heads times a head's"},
    {" d_in input_dim in_features ", "it is the width of the input; --d-out N is the output's"},
    {" d_key dim_k key_dim kdim ", "--d-k N is the width of queries and keys"},
    {" d_value dim_v value_dim vdim ", "--d-v N is the width of values"},
    {" batch_size batches ", "the input determines it: (batch, tokens, d_in)"},
    {" seq_len seqlen sequence_length length n_tokens num_tokens ",
     "the input determines it: (tokens, d_in)"},
    {" batch_first ", "inputs are (batch, tokens, d_in) always"},
    {" need_weights output_attentions return_weights return_attention weights_only ",
     "the attention weights are written anyway; --emit attention_weights writes them alone"},
    {" all everything intermediates ", "--emit all writes every array"},
    {" input inputs file input_file x data matrix ",
     "the input is an argument without a flag: attn MODE FILE, or - for standard input"},
    {" no_mask unmasked ",
     "attn self, cross and sdpa do not mask; --no-causal lifts the mask of attn multihead"},
    {" attention_mask ",
     "attn calls it --key-padding-mask, with --mask-true keep where 1 keeps a key"},
    {" no_causal non_causal bidirectional full ",
     "attn self, cross and sdpa do not mask; attn multihead has --no-causal"},
    {" sliding_window sliding_window_size ",
     "--window LEFT counts the keys before the query: a window of N keys is --window N-1"},
    {" temperature temp ", "--scale S multiplies the scores (default 1/sqrt(d_k))"},
    {" verbose v debug vv ", "attn explain MODE shows every step, attn --version the version"},
    {" quiet q silent ", "attn prints only its result; 2>/dev/null hides its notes"},
    {" version ", "attn --version shows it"},
    {" device cuda gpu cpu mps ", "attn computes on the processor; --threads N, --kernel NAME"},
    {" float64 double fp64 float32 float fp32 ", "use --dtype float32 or float64"},
    {" half fp16 float16 bf16 bfloat16 ", "types are --dtype float32 and float64"},
    {" color colour no_color ", "use the environment variables NO_COLOR and CLICOLOR_FORCE"},
    {" force overwrite y yes ", "existing files are replaced anyway"},
    {" dry_run n ", "attn batch has --dry-run"},
    {" norm layer_norm layernorm prenorm ", "--pre-norm applies the model's norm"},
};

constexpr Explained commands_elsewhere[] = {
    {" mha multi_head multi_head_attention multiheadattention heads ", "attn multihead"},
    {" gqa mqa grouped grouped_query ", "attn multihead --kv-heads N"},
    {" attention scaled_dot_product_attention dot_product scaled_dot_product operator flash "
     "flash_attention softmax ",
     "attn sdpa, the bare operator, or attn self, with projections"},
    {" self_attention selfattention single ", "attn self"},
    {" cross_attention encoder_decoder ", "attn cross"},
    {" masked masked_self decoder causal_attention gpt gpt2 ",
     "attn causal, or attn multihead for several heads"},
    {" version v ", "attn --version"},
    {" h usage man ", "attn --help"},
    {" draw heatmap show picture render visualize image ", "attn plot"},
    {" diff cmp allclose equal check ", "attn compare"},
    {" info ls list cat dump describe summary open ", "attn inspect"},
    {" run serve bulk many ", "attn batch"},
    {" walk trace steps tutorial why ", "attn explain MODE"},
    {" complete completions ", "attn completion"},
};

/// In lower case, with '_', between blanks.
std::string as_listed(std::string_view word) {
    std::string text(word.substr(0, 64));
    for (char& c : text)
        c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return " " + text + " ";
}

template <class Row, std::size_t N>
const Row* find_word(const Row (&rows)[N], const std::string& listed_word) {
    for (const Row& row : rows)
        if (row.names.find(listed_word) != std::string_view::npos) return &row;
    return nullptr;
}

const Option* option_of(std::span<const Option> options, std::string_view key) {
    for (const Option& option : options)
        if (option.key == key) return &option;
    return nullptr;
}

std::string joined_by_and(const std::vector<std::string_view>& names) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + std::string(names[i]);
    return text;
}

/// "attn multihead, cross and sdpa", the commands that have this option; or empty.
std::string owners_of(const Program& program, const Option& option) {
    std::vector<std::string_view> names;
    for (const CommandRow* command : program.commands) {
        const bool is_own = option_of(command->own, option.key) != nullptr;
        const bool is_of_mode = command->mode != nullptr && takes(*command, option);
        if (is_own || is_of_mode) names.push_back(command->name);
    }
    return names.empty() ? "" : "attn " + joined_by_and(names);
}

/// "attn plot has it".
std::string have(const std::string& owners, const std::string& what) {
    return owners + (owners.find(" and ") == std::string::npos ? " has " : " have ") + what;
}

/// Alternatives to an option that a mode lacks.
struct StandIn {
    std::string_view key;
    Modes modes;
    const char* words;
};

constexpr StandIn stand_ins[] = {
    {"causal", in(Mode::self), "attn causal masks, attn self never does"},
    {"causal", in(Mode::causal), "attn causal always masks, attn self never does"},
};

const Option* find_anywhere(const Program& program, std::string_view key) {
    if (const Option* option = option_of(program.options, key)) return option;
    for (const CommandRow* command : program.commands)
        if (const Option* option = option_of(command->own, key)) return option;
    return nullptr;
}

/// The command's own option, or one of the table that it takes.
const Option* find_taken(const Program& program, const CommandRow& command, std::string_view key) {
    if (const Option* option = option_of(command.own, key)) return option;
    const Option* const option = option_of(program.options, key);
    return option != nullptr && takes(command, *option) ? option : nullptr;
}

/// The commands that have an option that this one does not take; or empty.
std::string elsewhere(const Program& program, const CommandRow& command, const Option& option) {
    if (command.mode != nullptr && option.modes != 0) return where_else(option, command.mode->mode);
    const std::string owners = owners_of(program, option);
    return owners.empty() ? owners : have(owners, "it");
}

/// The nearest of the flags that the command takes, or of all others; with its dashes, or empty.
std::string nearest(const Program& program, const CommandRow& command, const std::string& meant,
                    bool is_negated, bool here) {
    std::vector<std::string> names;
    if (here && !is_negated) names = {"help", "config"};
    const auto add = [&](const Option& option) {
        if (!is_negated || is_boolean(option)) names.push_back(flag_name(option));
    };
    if (here) std::for_each(command.own.begin(), command.own.end(), add);
    for (const Option& option : program.options)
        if ((option.use & as_flag) != 0 && takes(command, option) == here) add(option);
    const std::string near = did_you_mean(meant, names);
    return near.empty() ? near : (is_negated ? "--no-" : "--") + near;
}

/// The nearest match of an unknown flag, here or elsewhere.
std::string nearest_flag(const Program& program, const CommandRow& command,
                         const std::string& meant, bool is_negated) {
    const std::string near = nearest(program, command, meant, is_negated, true);
    if (!near.empty()) return "the nearest known one is " + near;
    const std::string far = nearest(program, command, meant, is_negated, false);
    if (far.empty()) return "attn " + std::string(command.name) + " --help lists the known ones";
    std::string key = far.substr(is_negated ? 5 : 2);
    std::replace(key.begin(), key.end(), '-', '_');
    return have(owners_of(program, *option_of(program.options, key)), far);
}

/// Whether it is the negation of another flag, not a flag whose name begins so.
bool is_negation(const Program& program, const std::string& bare) {
    if (!bare.starts_with("no-") && !bare.starts_with("no_")) return false;
    std::vector<std::string> names;
    for (const CommandRow* command : program.commands)
        for (const Option& option : command->own)
            if (flag_name(option).starts_with("no-")) names.push_back(flag_name(option));
    return did_you_mean(bare, names).empty();
}

}  // namespace

std::string text_of(Modes modes) {
    std::vector<std::string_view> names;
    for (const ModeRow& row : mode_rows)
        if ((modes & in(row.mode)) != 0) names.push_back(row.name);
    return joined_by_and(names);
}

std::string where_else(const Option& option, Mode mode) {
    for (const StandIn& row : stand_ins)
        if (row.key == option.key && (row.modes & in(mode)) != 0) return row.words;
    const bool is_one = (option.modes & (option.modes - 1)) == 0;
    return "attn " + text_of(option.modes) + (is_one ? " has it" : " have it");
}

std::string unknown_flag(const Program& program, const CommandRow& command,
                         const std::string& flag) {
    const std::string name = "attn " + std::string(command.name), unknown = "unknown flag; ";
    const std::string bare = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
    const bool is_negated = is_negation(program, bare);
    const std::string meant = is_negated ? bare.substr(3) : bare;
    const bool is_letter = meant.size() < 2;  // which may mean anything
    const auto spelled = [&](const Option& option) {
        return is_negated && is_boolean(option) ? "--no-" + flag_name(option) : flag_of(option);
    };

    // A flag of another command, or one with a different spelling.
    const std::string listed_word = as_listed(meant);
    const std::string_view key = std::string_view(listed_word).substr(1, listed_word.size() - 2);
    const auto* const negated = is_negated ? find_word(explained, as_listed(bare)) : nullptr;
    const Option* const known = find_anywhere(program, key);
    const bool is_switch = known != nullptr && is_boolean(*known);
    if (negated != nullptr && !is_switch) return unknown + negated->words;
    if (known != nullptr && !is_letter) {
        const Option* const taken = find_taken(program, command, key);
        if (is_negated && taken != nullptr && !is_boolean(*taken))
            return unknown + flag_of(*taken) +
                   (taken->field.kind == FieldKind::no_value
                        ? " has no negation; leave it out"
                        : " takes a value and has no negation");
        if (taken != nullptr) return unknown + "expected " + spelled(*taken);
        // `--head` of explain is more likely a typo of --heads.
        const bool is_own = known->modes == 0 || (command.takes & ~unsigned{in_files}) == 0;
        const std::string near =
            is_own ? nearest(program, command, meant, is_negated, true) : std::string();
        return "no flag of " + name + "; " + elsewhere(program, command, *known) +
               (near.empty() || near.size() > flag.size() + 2 ? ""
                                                              : "; the nearest here is " + near);
    }
    for (const std::string& word : {as_listed(bare), listed_word})
        if (const auto* row = find_word(explained, word);
            row != nullptr && (!is_letter || flag == "-v" || flag == "-V"))
            return unknown + row->words;
    const auto* const row = find_word(other_names, listed_word);
    const Option* const taken = row == nullptr ? nullptr : find_taken(program, command, row->key);
    if (taken != nullptr && (!is_letter || flag.starts_with("--")))
        return unknown + "attn calls it " + spelled(*taken);
    if (row != nullptr && !is_letter) {
        const Option& option = *find_anywhere(program, row->key);
        return unknown + "attn calls it " + spelled(option) + "; " +
               elsewhere(program, command, option);
    }
    return unknown + (is_letter ? name + " --help lists the known ones"
                                : nearest_flag(program, command, meant, is_negated));
}

std::string unknown_command(const Program& program, const std::string& word) {
    if (word.empty()) return "an empty word; expected a command: attn --help lists them";
    if (word.starts_with('-') && word != "-") {
        const std::string flag = word.substr(0, word.find('='));
        const std::string bare = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
        std::string key = as_listed(bare.starts_with("no-") ? bare.substr(3) : bare);
        key = key.substr(1, key.size() - 2);
        const std::string near = did_you_mean(bare, {"help", "version"});
        const bool is_short =
            bare.size() == 1 && std::any_of(program.options.begin(), program.options.end(),
                                            [&](const Option& o) { return o.letter == bare[0]; });
        if (is_short || key == config_option.key || find_anywhere(program, key) != nullptr)
            return "a flag before a command; expected it behind, as in attn self " + flag;
        if (bare == "v") return "unknown flag; expected -V or --version";
        return near.empty() ? "unknown flag before a command; expected --help or --version"
                            : "unknown flag before a command; the nearest is --" + near;
    }
    if (const auto* row = find_word(commands_elsewhere, as_listed(word)))
        return std::string("unknown command; expected ") + row->words;
    const bool is_file = word == "-" || word.find_first_of("/.") != std::string::npos;
    if (is_file)
        return "no command; expected one before the input: attn self " + io::shortened(word);
    std::vector<std::string_view> names;
    names.reserve(program.commands.size());
    for (const CommandRow* command : program.commands) names.push_back(command->name);
    const std::string near = did_you_mean(word, {names.begin(), names.end()});
    return "unknown command; " +
           (near.empty() ? "expected " + listed(names) : "the nearest is " + near);
}

std::string unknown_key(const std::string& key, const std::vector<std::string>& known) {
    const std::string start = "unknown key \"" + io::shortened(key) + "\"; ";
    const std::string listed_word = as_listed(key);
    const auto is_known = [&](std::string_view name) {
        return std::find(known.begin(), known.end(), name) != known.end();
    };
    constexpr std::string_view matrix = " input x data matrix embeddings embedding hidden_states ";
    if (is_known("inputs") && matrix.find(listed_word) != std::string_view::npos)
        return start + "attn calls it \"inputs\"";
    if (is_known("value") && listed_word == " v ") return start + "attn calls it \"value\"";
    if (const auto* row = find_word(other_names, listed_word); row != nullptr && is_known(row->key))
        return start + "attn calls it \"" + std::string(row->key) + "\"";
    // A letter may mean anything.
    if (const auto* row = find_word(explained, listed_word); row != nullptr && key.size() > 1)
        return start + row->words;
    const std::string near = did_you_mean(key, known);
    if (!near.empty()) return start + "the nearest known one is \"" + near + "\"";
    return start +
           "expected a flag's name with '_' for '-', or in a request inputs, id, tokens or mode";
}

}  // namespace attn::cli
