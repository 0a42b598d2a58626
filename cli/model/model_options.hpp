// The flags of `attn model` that modes lack. A batch takes them too, as defaults of its records of
// mode model.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

inline constexpr Option model_options[] = {
    {.key = "text",
     .field = text_field,
     .argument = "TEXT",
     .help = "the input as a text; the tokenizer is the folder's "
             "tokenizer.json, or the one in the "
             "GGUF file"},
    {.key = "text_file",
     .field = operand_field,
     .argument = "FILE|-",
     .help = "the text of --text from a file (default none)"},
    {.key = "truncate",
     .limits = {.lowest = 1, .expected = "an integer from 1"},
     .argument = "N",
     .help = "keep N tokens of a longer text, the special ones among them (default all)"},
    {.key = "text_pair",
     .field = text_field,
     .argument = "TEXT",
     .help = "a second text; the tokenizer joins the pair (default none)"},
    {.key = "no_special_tokens", .field = no_value, .help = "add no special tokens to --text"},
    {.key = "hidden_states",
     .field = operand_field,
     .argument = "FILE",
     .help = "the hidden states that enter the first of --layers, (tokens, "
             "width), instead of tokens"},
    {.key = "attention_mask",
     .limits = {.expected = "0 or 1 for each token"},
     .argument = "LIST",
     .help = "1 for tokens that may be attended to, 0 for padding (default all 1)"},
    {.key = "position_ids",
     .limits = {.expected = "integers from 0, one per token"},
     .argument = "LIST",
     .help = "positions of the tokens (default 0,1,...)"},
    {.key = "token_type_ids",
     .limits = {.expected = "integers from 0, one per token"},
     .argument = "LIST",
     .help = "segments of the tokens, for models that have them (default all 0)"},
    {.key = "layers",
     .limits = {.expected = "all, or numbers from 0; negative numbers count from the end"},
     .argument = "LIST",
     .help = "layers whose arrays are written, as in 0,5,-1 (default all)"},
    {.key = "generate",
     .limits = {.lowest = 1, .highest = 1e6, .expected = "an integer from 1 to 1000000"},
     .argument = "N",
     .help = "append the most probable token up to N times, then compute the "
             "arrays (default 0)"},
    {.key = "decoder_ids",
     .limits = {.expected = "token ids, as in 0,31,4"},
     .argument = "N,...",
     .help = "for encoder-decoder models: token ids of the decoder (default "
             "its start token)"},
    {.key = "pixel_values",
     .field = operand_field,
     .argument = "FILE",
     .help = "for image models: an image, (channels, height, width), or its "
             "patches"},
    {.key = "spatial_shapes",
     .field = operand_field,
     .argument = "FILE",
     .help = "for image models that take patches: the numbers of rows and "
             "columns of patches"},
    {.key = "input_values",
     .field = operand_field,
     .argument = "FILE",
     .help = "for audio models: the samples, or a spectrogram (frames, bins)"},
    {.key = "input_features",
     .field = operand_field,
     .argument = "FILE",
     .help = "for audio models: features (bins, frames)"},
};

}  // namespace attn::cli
