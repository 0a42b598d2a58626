#include "cli/request/option_limits.hpp"

#include <unordered_map>

#include "cli/request/field.hpp"
#include "io/read/examples.hpp"

namespace attn::cli {
// Hides the short names of the table from the other files of the module in a unity build.
namespace option_rows {
namespace {

constexpr Modes multihead = in(Mode::multihead), sdpa = in(Mode::sdpa), cross = in(Mode::cross);
constexpr Modes linear = in(Mode::linear), bare_operands = sdpa | linear;
constexpr Modes one_input = in(Mode::self) | in(Mode::causal) | multihead | linear;
constexpr Modes layers = one_input | cross, with_out = multihead | cross | linear;
constexpr Modes several_heads = with_out | sdpa;
constexpr Modes all_modes = every_mode, softmax = all_modes & ~linear;

constexpr unsigned source = as_key | as_flag | in_batch | in_explain;  // where the input comes from
constexpr unsigned flag_only = as_flag | in_batch | in_explain;
constexpr unsigned of_csv = flag_only | in_files;
constexpr unsigned of_arrays = as_key | as_flag | in_config | in_batch;
constexpr unsigned saved = everywhere | as_saved;
constexpr unsigned whole_model = in_model | in_scan;

using R = Request;
using S = Settings;

constexpr const char* input = "Input";
constexpr const char* dimensions = "Dimensions";
constexpr const char* weights = "Weights";
constexpr const char* masking = "Masking";
constexpr const char* scores = "Scores";
constexpr const char* recurrence = "Recurrence";
constexpr const char* cache = "Cache";
constexpr const char* dropout = "Dropout";
constexpr const char* gradients = "Gradients";
constexpr const char* output = "Output";
constexpr const char* pictures = "Pictures";
constexpr const char* numerics = "Numerics";

// clang-format off
constexpr Option table[] = {
    {"input_format", input, all_modes, among<input_format_names, &R::input_format>, {}, "",
     "format of INPUT, as attn help formats lists them; auto: by the suffix, else by the first bytes", flag_only},
    {"csv_header", input, all_modes, among<io::guess_names, &R::csv, &io::CsvStyle::header>, {}, "",
     "whether CSV starts with a header line", of_csv},
    {"csv_labels", input, all_modes, among<io::guess_names, &R::csv, &io::CsvStyle::labels>, {}, "",
     "whether the first CSV column holds token labels", of_csv},
    {"csv_index", input, all_modes, among<io::guess_names, &R::csv, &io::CsvStyle::index>, {}, "",
     "whether the first CSV column is an index, and not data", of_csv},
    {"csv_decimal", input, all_modes, among<io::decimal_mark_names, &R::csv, &io::CsvStyle::decimal>, {}, "",
     "the decimal mark of numbers in CSV (default .); a comma then separates fields only next to quotes", of_csv},
    {"csv_quotes", input, all_modes, among<io::quotes_names, &R::csv, &io::CsvStyle::quotes>, {}, "",
     "whether \" quotes fields of CSV, or is text", of_csv},
    {"csv_comments", input, all_modes, field_of<&R::csv, &io::CsvStyle::comments>, {}, "",
     "lines of CSV that begin with # are comments (default: those before the first line)", of_csv},
    {"tokens", input, all_modes, field_of<&R::tokens>, words, "LIST",
     "labels of the tokens, of the queries in cross and sdpa (default: of the input's file)", source},
    {"context_tokens", input, cross | sdpa, field_of<&R::context_tokens>, words, "LIST",
     "labels of the keys (default: of the file of --context or --key)", source},
    {"example", input, all_modes, field_of<&R::example>, {}, io::example_names.data(),
     "use a built-in input instead of INPUT; softmax is for sdpa", source},
    {"rand", input, all_modes, setting<&S::rand>, drawn, "[B,]N,D",
     "draw the input as torch.rand(tokens, d_in) or torch.rand(batch, tokens, d_in) does after --seed, before the parameters; in sdpa query, key and value, each [B,][H,]N,D"},
    {"randn", input, all_modes, setting<&S::randn>, drawn, "[B,]N,D", "the same as torch.randn does"},
    {"uniform", input, all_modes, setting<&S::uniform>, {-most, most, "two numbers, as -4,4", 2, 2}, "A,B",
     "with --rand: numbers from A to B, as uniform_ draws them (default 0,1)"},
    {"randint", input, all_modes, setting<&S::randint>, {-0x1p53, 0x1p53, "two integers, as 0,10", 2, 2}, "LOW,HIGH",
     "with --rand: integers from LOW to HIGH - 1, as randint draws them (default: real numbers)"},
    {"corners", input, all_modes, among<corner_names, &R::corners>, {}, "",
     "with --rand: all 0, 1, the largest or smallest positive number of --store, else of --dtype, or 1 and -1 alternating, in place of the numbers drawn (default: drawn)"},
    {"text", input, layers, as(FieldKind::text, field_of<&R::text>), {}, "TEXT",
     "embed these words instead of reading INPUT"},
    {"text_file", input, layers, operand_field, {}, "FILE|-",
     "read the text from FILE, or from standard input with - (default none)", source},
    {"truncate", input, layers, field_of<&R::truncate>, {1}, "N", "keep the first N words of a longer text (default all)"},
    {"vocab_size", input, layers, field_of<&R::vocab_size>, {1}, "N", "rows of the embedding of --text (default 50000)"},
    {"embed_dim", input, layers, field_of<&R::embed_dim>, {1}, "N", "columns of the embedding of --text (default 3)"},
    {"embed_seed", input, layers, field_of<&R::embed_seed>, {}, "N", "seed of the embedding of --text (default 0)"},
    {"context_length", input, layers, setting<&S::context_length>, size, "N",
     "refuse inputs of more than N tokens (default no limit)"},
    {"ignore_arrays", input, all_modes, field_of<&R::ignore_arrays>, names, "NAME,...",
     "arrays of INPUT that are not read (default none: one without a known name is an error)", flag_only},
    {"query", input, bare_operands, operand_field, {}, "FILE", "the query (default: of the request)", source},
    {"key", input, bare_operands, operand_field, {}, "FILE", "the key (default: of the request)", source},
    {"value", input, bare_operands, operand_field, {}, "FILE", "the value (default: of the request)", source},
    {"qkv", input, sdpa, operand_field, {}, "FILE",
     "query, key and value in one array, ([batch,] tokens, 3, heads, d), with --qkv-format bshd unless given (default none)", source},
    {"kv", input, sdpa, operand_field, {}, "FILE",
     "key and value in one array, ([batch,] tokens, 2, heads, d), as --qkv (default none)", source},
    {"qkv_format", input, bare_operands, setting_among<qkv_format_names, &S::qkv_format>, {}, "",
     "order of the axes of query, key, value and caches, and of context_vectors: batch, heads, sequence, d (default bhsd); bshd is FlashAttention's"},
    {"batch_first", input, layers | sdpa, setting<&S::batch_first>, {}, "",
     "inputs and context_vectors are (batch, tokens, d); --no-batch-first: (tokens, batch, d), as in nn.MultiheadAttention (default on)"},
    {"context", input, cross, operand_field, {}, "FILE",
     "what keys and values are made from (default: of the request)", source},
    {"value_input", input, cross, operand_field, {}, "FILE",
     "what values are made from, with the tokens of --context (default --context)", source},
    {"token_ids", input, layers, field_of<&R::token_ids>, counts, "N,...",
     "embed these tokens with the model of --weights instead of reading INPUT (default none)",
     source | in_model},

    {"d_out", dimensions, layers, setting<&S::d_out>, size, "N",
     "width of the context vectors (default d_in)"},
    {"d_k", dimensions, layers, setting<&S::d_k>, size, "N",
     "width of queries and keys, all heads together (default d_out)"},
    {"d_v", dimensions, layers, setting<&S::d_v>, size, "N", "width of values, all heads together (default d_out)"},
    {"heads", dimensions, several_heads, setting<&S::heads>, size, "N",
     "number of heads (default: the model's, or from the query's shape, or 1)", saved | whole_model},
    {"kv_heads", dimensions, several_heads, setting<&S::kv_heads>, size, "N",
     "heads of keys and values, each shared by a group of heads (default as heads)", saved | of_heads},

    {"init", weights, layers, init_field, {}, "",
     "how the parameters are drawn: linear, rand, randn, mha, or as torch.nn.init: xavier_uniform[,GAIN], "
     "xavier_normal[,GAIN], kaiming_uniform[,A], kaiming_normal[,A], uniform,A,B, normal,MEAN,STD, trunc_normal,MEAN,STD; none: Q = K = V = X, unscaled", everywhere | of_draws},
    {"draw_order", weights, layers, setting<&S::draw_order>, order, "key,query,...",
     "order in which the parameters are drawn (default query,key,value,out)", everywhere | of_draws},
    {"qkv_joined", weights, one_input, setting<&S::qkv_joined>, {}, "",
     "draw query, key and value as one tensor, nn.Linear(d_in, 3 d_out), and split it (default off)",
     everywhere | of_draws},
    {"rng", weights, all_modes, setting_among<rng_names, &S::rng>, {}, "",
     "the generator of --seed: PyTorch's CPU generator, that of np.random.seed, whose numbers are float64, or PyTorch's CUDA generator"},
    {"device", weights, all_modes, among<device_names, &R::device>, {}, "",
     "cuda: --rng cuda --dropout-stream cuda; cpu: --rng torch --dropout-stream mt19937 (default cpu)", source},
    {"gpu", weights, all_modes, among<gpu_names, &R::gpu>, {}, "",
     "--multiprocessors and --threads-per-multiprocessor of this GPU (default h100)", source},
    {"multiprocessors", weights, all_modes, setting<&S::multiprocessors>, {1, 65536}, "N",
     "of the GPU; it matters for tensors of more elements than all threads (default 132)"},
    {"threads_per_multiprocessor", weights, all_modes, setting<&S::threads_per_multiprocessor>, {256, 65536}, "N",
     "the most threads resident on one multiprocessor (default 2048)"},
    {"seed", weights, all_modes, setting<&S::seed>, {}, "N",
     "torch.manual_seed, -2^63 to 2^64-1, or np.random.seed with --rng numpy (default 0)", everywhere, 's'},
    {"rng_skip", weights, all_modes, setting<&S::rng_skip>, from_0, "N",
     "skip N 32-bit draws before the first one that is used; with --rng cuda, the generator's offset (default 0)", everywhere | of_draws},
    {"qkv_bias", weights, layers, setting<&S::qkv_bias>, {}, "",
     "add biases to the query, key and value projections (default off)"},
    {"out_proj", weights, with_out, setting<&S::out_proj>, {}, "",
     "multiply the joined heads by W_out (default on; style wrapper never does)"},
    {"out_bias", weights, with_out, setting<&S::out_bias>, {}, "",
     "add a bias to the output projection (default on where there is one)"},
    {"style", weights, multihead, setting_among<style_names, &S::style>, {}, "",
     "split: one projection, cut into heads; wrapper: independent layers side by side, each to d_out"},
    {"weights", weights, layers, operand_field, {}, "FILE",
     "parameters from a file of a model instead of drawn ones (default none)"},
    {"family", weights, layers, choice<NamedFamily<&R::family>>, {}, "",
     "how the tensors are named: gpt2, llama, bert, neox, roberta, meta, internlm2, baichuan, chatglm, "
     "timm, mha, notebook, or as in a class of diffusers, d2l, annotated, fairseq, mlx, openai-whisper, jadore, "
     "labml, ldm, gpt-dev, nanogpt, uvadlc, qkv-proj, transformer-lens, flax, keras (default: detected)",
     everywhere | of_model | whole_model},
    {"weight_names", weights, layers, field_of<&R::weight_names>, names, "THEIRS=OURS,...",
     "names of the layer's tensors; OURS is query, key, value or qkv, out, or one of these with .bias (default: the family's)", everywhere | of_model},
    {"qkv_layout", weights, layers, among<qkv_layout_names, &R::qkv_layout>, {}, "",
     "order in a combined QKV tensor: all queries, keys, values, or query, key, value of each head (default: the family's)", everywhere | of_model},
    {"layer", weights, layers, field_of<&R::layer>, {0, largest_size}, "N",
     "layer of the model (default 0, or the only one)", everywhere | of_model},
    {"weights_layout", weights, layers, among<weights_layout_names, &R::weights_layout>, {}, "",
     "axes of bare W_query arrays: (d_in, d_out) or (d_out, d_in) (default in-out, or as attn wrote them)"},
    {"weights_shapes", weights, layers, field_of<&R::weights_shapes>, {}, "",
     "shapes that the tensors must have (default any)", as_key | in_config},
    {"model_config", weights, layers, field_of<&R::model_config>, {}, "FILE|none",
     "heads, rope and the like of the model (default: config.json next to --weights)",
     everywhere | whole_model},
    {"pre_norm", weights, one_input, field_of<&R::pre_norm>, {}, "",
     "apply the model's norm before the layer (default on with --token-ids where the model has one, else off)"},
    {"norm", weights, layers, among<norm_form_names, &R::norm>, {}, "",
     "form of the model's norms: LayerNorm, RMSNorm, or RMSNorm that stores its weight - 1 (default: its family's where there is a config)"},
    {"norm_eps", weights, layers, field_of<&R::norm_eps>, at_least_0, "E",
     "epsilon of the model's norms (default: of its config, else its family's where there is a config)", everywhere | whole_model},
    {"position_offset", weights, layers, field_of<&R::position_offset>, {0, largest_size}, "N",
     "row of the model's table of positions for the first of --token-ids (default: of its config)"},
    {"embedding_scale", weights, layers, field_of<&R::embedding_scale>, {-most, most, "a finite number"},
     "S", "factor on the model's embedding of --token-ids (default 1 where there is a config)"},
    {"save_family", weights, layers, choice<NamedFamily<&R::save_family>>, {}, "",
     "whose names --save-weights gives (default --family; else notebook, or mha after --init mha)",
     as_flag},
    {"save_weights", weights, layers, field_of<&R::save_weights>, {}, "FILE",
     "write the parameters too, as safetensors, npz or json by the name (default none)", as_flag},

    {"causal", masking, (with_out & ~linear) | sdpa, setting<&S::causal>, {}, "",
     "a token attends to itself and earlier tokens, not to later ones (default on in multihead, but for bert; off in cross and sdpa)", saved},
    {"causal_align", masking, softmax, setting_among<causal_align_names, &S::causal_align>, {}, "",
     "query i sees keys up to i, or the last query sees all (default top-left; must be named where causal and lengths differ)"},
    {"mask", masking, softmax, operand_field, {}, "FILE",
     "boolean or additive, broadcast to (batch, heads, q, kv) (default none)", source},
    {"mask_true", masking, softmax, setting_among<mask_true_names, &S::mask_true>, {}, "",
     "what true means in boolean masks: may attend, or is masked (no default)"},
    {"mask_kind", masking, softmax, among<mask_kind_names, &R::mask_kind>, {}, "",
     "a mask of 0 and 1 is boolean, or is added to the scores (no default)"},
    {"key_padding_mask", masking, softmax, operand_field, {}, "FILE",
     "mask of keys, (batch, kv) (default none)", source},
    {"kv_lengths", masking, softmax, lengths_field, counts, "N,...|FILE",
     "valid keys of each batch entry, or (batch, queries); those after are masked (default all)"},
    {"window", masking, softmax, setting<&S::window>, {-1, largest_size, "one or two integers from -1 to 2147483648", 2}, "LEFT[,RIGHT]",
     "keys from p-LEFT to p+RIGHT of a query at p; -1 is unbounded (default -1,-1)", saved},
    {"mask_mod", masking, softmax, setting<&S::mask_mod>, {}, "FORMULA",
     "a query at position q attends to key k where this is true, as q >= k || k < 4; attn help formulas (default: everywhere)", saved},
    {"let", masking, softmax, let_field, {}, "NAME=ARRAY",
     "an array for formulas, as doc=0,0,1,1 or doc=doc.npy for doc[q] == doc[k]; once for each (default none)", saved, 0, true},
    {"prefix_len", masking, softmax, setting<&S::prefix_len>, counts, "N,...",
     "with causal: every query attends to the first N keys, of each batch entry (default none)", saved},
    {"keep_first", masking, softmax, setting<&S::keep_first>, size, "N",
     "with --window: every query attends to the first N keys, as in StreamingLLM (default none)", saved},
    {"chunk", masking, softmax, setting<&S::chunk>, size, "N",
     "a token attends within its block of N tokens, as in Llama 4 (default none)", saved},
    {"dilation", masking, softmax, setting<&S::dilation>, size, "N",
     "a query attends to keys at distances that are multiples of N (default none)", saved},
    {"segment_ids", masking, softmax, array_field<&S::segment_ids>, {}, "LIST|FILE",
     "a token attends to those with the same number, as packed documents (default none)", saved | in_model},
    {"kv_segment_ids", masking, softmax, array_field<&S::kv_segment_ids>, {}, "LIST|FILE",
     "the numbers of the keys, where they are not those of the queries (default as --segment-ids)", saved},
    {"block_mask", masking, softmax, array_field<&S::block_mask>, {}, "FILE",
     "(blocks of queries, blocks of keys), after heads, or batch and heads: true where they attend (default none)", saved},
    {"block_size", masking, softmax, setting<&S::block_size>, {1, largest_size, "one or two integers from 1, as in 128,64", 2}, "N[,N]",
     "queries and keys of a block of --block-mask (default: the lengths by the blocks, rounded up)", saved},
    {"grid", masking, softmax, setting<&S::grid>, {1, largest_size, "one to three integers from 1, as in 14,14", 3}, "H,W",
     "sizes of the grid whose tokens these are, row by row, for --neighborhood (default none)", saved},
    {"neighborhood", masking, softmax, setting<&S::neighborhood>, {1, largest_size, "one to three odd integers, as in 7", 3}, "K[,K]",
     "a query attends to the K by K keys around it on --grid, --dilation apart, as in NATTEN (default none)", saved},
    {"cu_seqlens", masking, sdpa, array_field<&S::cu_seqlens>, {}, "LIST|FILE",
     "(tokens, heads, d) are sequences in a row, as 0,5,9 of two; each attends to itself (default one sequence)"},
    {"cu_seqlens_k", masking, sdpa, array_field<&S::cu_seqlens_k>, {}, "LIST|FILE",
     "where those of keys begin, if not where those of queries do (default as --cu-seqlens)"},
    {"mask_by", masking, softmax, setting_among<mask_by_names, &S::mask_by>, {}, "",
     "masks of distances (causal, window, chunk, ...) compare indices, or --position-ids (default index)", saved},
    {"top_k", masking, softmax, setting<&S::top_k>, size, "N",
     "a query attends to the N keys of the highest scores that masks leave; of equal ones to the first (default all)", saved},
    {"mask_method", masking, softmax, setting_among<mask_method_names, &S::mask_method>, {}, "",
     "mask scores before the softmax, or weights after it and divide rows by their sums"},

    {"scale", scores, all_modes, scales_field, {-most, most, "a finite number, or one per head", std::size_t{1} << 31, 2}, "S,...",
     "factor on the scores, one for all heads or one each (default 1/sqrt(d_k); 1 with --init none)", saved | of_heads},
    {"softcap", scores, softmax, setting<&S::softcap>, at_least_0, "C",
     "C tanh(x / C) on the scaled scores (default 0, off)", saved},
    {"alibi", scores, softmax, setting<&S::alibi>, {}, "",
     "subtract slope |k - p| from the scores, with a slope for each head (default off)", saved},
    {"alibi_distance", scores, softmax, setting_among<alibi_distance_names, &S::alibi_distance>, {}, "",
     "of --alibi: -|k - p|, or k - p, which favours keys after the query (default absolute)", saved},
    {"alibi_slopes", scores, softmax, slopes_field, constants, "published|geometric|S,...|FILE",
     "slopes of --alibi, one per head: as published, 2^(-8(h+1)/heads), or these (default published)", saved},
    {"relative_bias", scores, softmax, array_field<&S::relative_bias>, {}, "FILE",
     "add a table's bias of each head, (buckets, heads), by the distance from query to key, as T5 does (default none)", saved},
    {"relative_buckets", scores, softmax, setting<&S::relative_buckets>, size, "N",
     "buckets of distances in --relative-bias, half of them for later keys unless causal (default its rows)", saved},
    {"relative_max_distance", scores, softmax, setting<&S::relative_max_distance>, positive, "D",
     "distance from which all keys are in the last bucket (default 128)", saved},
    {"score_mod", scores, softmax, setting<&S::score_mod>, {}, "FORMULA",
     "the scaled score becomes this, before masks, as score - 0.1 * abs(q - k) (default score)", saved},
    {"prob_mod", scores, softmax, setting<&S::prob_mod>, {}, "FORMULA",
     "the weight becomes this before dropout, as p * (p > 0.01); rows are not divided by their sums (default p)", saved},
    {"rope", scores, softmax, choice<NamedRope>, {}, "",
     "rotate queries and keys by their position, in pairs (i, i+d/2) or (2i, 2i+1), or not (default none, or of the model's config)", saved},
    {"rope_base", scores, softmax, setting<&S::rope_base>, positive, "B", "base of the angles (default 10000)", saved | whole_model},
    {"rope_dims", scores, softmax, setting<&S::rope_dims>, {2, largest_size}, "N", "dimensions of a head to rotate (default all)", saved},
    {"rope_scaling", scores, softmax, rope_scaling_field, {0, 0, "one number or four, or rope_parameters", 4},
     "JSON|F[,LOW,HIGH,LENGTH]",
     "a config's rope_parameters, as {\"rope_type\":\"yarn\",...}; or F, which divides all angles; or F,LOW,HIGH,LENGTH, "
     "as llama3: angles of more than HIGH turns in LENGTH positions are kept (default none)", saved | whole_model},
    {"position_ids", scores, softmax, array_field<&S::position_ids>, {}, "LIST|FILE",
     "positions of new tokens for --rope, ([batch,] tokens), or with mrope_section (tokens) or (axes, [batch,] tokens) (default: after the cached keys)", saved},
    {"key_position_ids", scores, softmax, array_field<&S::key_position_ids>, {}, "LIST|FILE",
     "positions of the new keys, or of cached and new keys for masks (default as --position-ids)", saved},
    {"sink", scores, softmax, setting<&S::sink>, {0, 0, "numbers", std::size_t{1} << 31}, "S,...",
     "logits in the softmax's denominator, one per head or one for all (default none)", saved | of_heads},
    {"softmax_plus", scores, softmax, setting<&S::softmax_plus>, at_least_0, "N",
     "add N to the softmax's denominator, as a sink of ln N; 1: softmax1 (default 0, off)", saved},
    {"qk_norm", scores, all_modes, setting<&S::qk_norm>, {0, 0, "l2"}, "",
     "divide queries and keys by their L2 norm, as cosine attention does; linear: as Gated DeltaNet does. Also --qk-norm l2 (default off)"},

    {"rule", recurrence, linear, setting_among<rule_names, &S::rule>, {}, "",
     "update of the state: none, decay, correction by beta, or both (default: what --decay and --beta imply)"},
    {"decay", recurrence, linear, as(FieldKind::operand, setting<&S::decay>), decays, "FILE|G,...",
     "log of the state's decay, per token and key head or key dimension, or constants (default none)", everywhere},
    {"beta", recurrence, linear, as(FieldKind::operand, setting<&S::beta>), constants, "FILE|B,...",
     "rate of the delta rule, per token and key head, or constants (default none)", everywhere},
    {"past_state", recurrence, linear, operand_field, {}, "FILE",
     "state before the first token, (batch, kv_heads, d_k, d_v) (default zeros)", source},
    {"decay_form", recurrence, linear, setting_among<decay_form_names, &S::decay_form>, {}, "",
     "what --decay has: logs of factors, as fla's g, or the factors (default log)"},
    {"bonus", recurrence, linear, array_field<&S::bonus>, {}, "LIST|FILE",
     "RWKV-6's u, (kv_heads, d_k) or one number: outputs are read before a token's decay and update, its own key times this added (default none)"},
    {"normalize", recurrence, linear, setting_among<normalize_names, &S::normalize>, {}, "",
     "retention: divide row t by max(sqrt(sum of its decays), |sum of its weights|), as RetNet does (default none)"},

    {"past_key", cache, softmax, operand_field, {}, "FILE",
     "cached keys, put before the new ones (default none)", source},
    {"past_value", cache, softmax, operand_field, {}, "FILE", "cached values (default none)", source},

    {"key_scale", cache, softmax, array_field<&S::key_scale>, {}, "S,...|FILE",
     "factors of quantised keys, of the cache or, without one, of --key: one, for each key head, or for each "
     "token and head (default 1); with a --dtype of float8, also the scales of quantisation"},
    {"value_scale", cache, softmax, array_field<&S::value_scale>, {}, "S,...|FILE",
     "the same of values (default 1)"},

    {"dropout", dropout, softmax, setting<&S::dropout>, {0, 1, "a probability from 0 to 1"}, "P",
     "probability of dropping each attention weight (default 0)"},
    {"dropout_seed", dropout, softmax, setting<&S::dropout_seed>, {}, "N",
     "give dropout a generator of its own (default: go on after the weights' draws)"},
    {"dropout_skip", dropout, softmax, setting<&S::dropout_skip>, from_0, "N",
     "32-bit draws to skip in dropout's own generator; with --dropout-stream cuda, its offset (default 0)"},
    {"dropout_stream", dropout, softmax,
     setting_among<dropout_stream_names, &S::dropout_stream>, {}, "",
     "PyTorch's own stream on a CPU, that of its builds with MKL on Intel processors, or that of its CUDA generator"},
    {"dropout_kernel", dropout, softmax, setting_among<dropout_kernel_names, &S::dropout_kernel>, {}, "",
     "with --dropout-stream cuda: the kernel of scaled_dot_product_attention that draws (default: a call of F.dropout on the weights)"},

    {"backward", gradients, all_modes, setting<&S::backward>, {}, "",
     "also the gradients of a loss with respect to inputs, parameters and each step, as autograd computes them (default off)"},
    {"loss", gradients, all_modes, setting_among<loss_names, &S::loss>, {}, "",
     "of the context vectors: their sum, their mean, or the mean of squared differences from --target (default: mse with --target, else sum)"},
    {"target", gradients, all_modes, operand_field, {}, "FILE",
     "what --loss mse compares with, in the shape of context_vectors (no default)", source},
    {"grad_output", gradients, all_modes, operand_field, {}, "FILE",
     "in place of a loss: its gradient with respect to context_vectors, as for out.backward(g) (default: that of --loss)", source},

    {"output", output, all_modes, field_of<&R::output>, {}, "FILE",
     "write there, whole or not at all (default -, standard output)", as_flag | in_explain | in_model, 'o'},
    {"format", output, all_modes, among<format_names, &R::format>, {}, "",
     "json, ndjson: a document; csv, tsv, csv-long, npy, npz, safetensors: arrays; torch: PyTorch's print(); "
     "table: aligned; c: a header; memh: words of Verilog's $readmemh; folder: of npy files; none; without it, by -o's suffix, and a table on a terminal", of_arrays | in_model, 'f'},
    {"emit", output, all_modes, setting<&S::emit>, names, "LIST",
     emit_help.data(), of_arrays | in_model, 'e'},
    {"token", output, all_modes, as(FieldKind::token, setting<&S::token>, take_token), from_0, "N|LABEL",
     "compute one query row only, from 0 or by its token's label (default all)", everywhere, 't'},
    {"rows", output, all_modes, as(FieldKind::integers, setting<&S::rows>, take_rows), {0, largest_size, "", 2, 2}, "A:B",
     "compute query rows A to B - 1 only, from 0 (default all)", (everywhere & ~in_explain) | in_check},
    {"head", output, several_heads, setting<&S::head>,
     {0, largest_size, "integers from 0 separated by commas, as in 0,2", std::size_t{1} << 16}, "N,...",
     "heads in the arrays of each head, from 0; context_vectors are always those of all (default all)", (everywhere & ~in_explain) | in_model | in_check},
    {"top", output, softmax, setting<&S::top>, size, "N",
     "keys of each query in top_keys and top_weights (no default)", of_arrays | in_check},
    {"precision", output, all_modes, field_of<&R::precision>, {0, 20}, "N",
     "digits after the point (default: json the shortest exact, torch and table 4)", everywhere | in_model},
    {"nonfinite", output, all_modes, among<io::nonfinite_names, &R::nonfinite>, {}, "",
     "how JSON shows infinities and NaN: \"-Infinity\", null or -Infinity (default string)",
     of_arrays | in_model},
    {"store", output, all_modes, field_of<&R::store>, {}, "TYPE",
     "round numbers to float16, bfloat16, float8_e4m3fn[:SAT], float8_e5m2[:SAT], int8:SCALE or "
     "fixed:BITS,FRACTION[,RND|TRN][,SAT|WRAP], in c and memh, and in npy, folder, npz and safetensors if these have the type (default --dtype)",
     as_key | as_flag | in_config | in_batch | in_model},
    {"average_heads", output, several_heads, setting<&S::average_heads>, {}, "",
     "attention_weights as their mean over the heads (default off)", of_arrays | in_check},
    {"pretty", output, all_modes, field_of<&R::pretty>, {}, "",
     "one line a row in JSON (default one line in all)", as_key | as_flag | in_config | in_model},
    {"bare", output, all_modes, field_of<&R::bare>, {}, "",
     "write the id and the arrays alone, without mode, config, shapes and layout (default off)",
     as_key | as_flag | in_batch | in_model},

    {"max_output", output, all_modes, as(FieldKind::string, field_of<&R::max_output>, take_size), {1, 0x1p60, "a number of bytes, as 500MB or 8GiB"}, "SIZE",
     "refuse a larger result as text or on standard output; larger binary files get a note (default 4GiB)",
     as_key | as_flag | in_batch | in_model | in_part},
    {"dry_run", output, all_modes, field_of<&R::dry_run>, {}, "",
     "operations and memory as JSON, instead of the arrays (default off)",
     as_flag | in_batch | in_model},

    {"heatmap", pictures, all_modes, field_of<&R::heatmap>, {}, "",
     "draw on the terminal: on standard output where nothing else goes there (--format none, -o, or a terminal without either), else on standard error (default off)", as_flag | in_model},
    {"plot", pictures, all_modes, field_of<&R::plot>, {}, "FILE",
     "draw as .svg, .png or .html, by the name (default none)", as_flag | in_model},
    {"plot_array", pictures, all_modes, field_of<&R::plot_array>, names, "LIST",
     "emitted arrays to draw, or all (default attention_weights; html: all)", as_flag | in_model},
    {"color_scale", pictures, all_modes, field_of<&R::color_scale>, {}, io::color_scale_argument,
     io::color_scale_help, as_flag | in_model},

    {"dtype", numerics, all_modes, choice<NamedDtype>, {}, "",
     "type of draws, steps and results; float8: keys and values that are given, and parameters, are quantised to it, and computed in float32", everywhere | whole_model},
    {"softmax_dtype", numerics, softmax, setting_among<rounding_names, &S::softmax_dtype>, {}, "",
     "with --dtype bfloat16 or float16: type of the steps of a softmax (default float32)", everywhere},
    {"accumulate", numerics, softmax, setting_among<rounding_names, &S::accumulate>, {}, "",
     "with --dtype bfloat16 or float16: type of the accumulator of matrix products (default float32)", everywhere},
    {"kernel", numerics, all_modes, choice<NamedBackend>, {}, "",
     "what computes: PyTorch's arithmetic step by step, or a fused kernel; auto: that of this "
     "processor where the work is large; also by the environment's ATTN_KERNEL",
     everywhere | whole_model},
    {"threads", numerics, all_modes, field_of<&R::threads>, {1, 1024}, "N",
     "threads for large work (default: the processors it may use)", source | whole_model},
};
// clang-format on

}  // namespace
}  // namespace option_rows

std::span<const Option> options() {
    return option_rows::table;
}

const Option* find_option(std::string_view key) {
    static const auto by_key = [] {
        std::unordered_map<std::string_view, const Option*> all;
        for (const Option& option : options()) all[option.key] = &option;
        return all;
    }();
    const auto found = by_key.find(key);
    return found == by_key.end() ? nullptr : found->second;
}

}  // namespace attn::cli
