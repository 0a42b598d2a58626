// Image models: encoders of patches of an image, or of a spectrogram.
#include <cmath>
#include <numbers>
#include <utility>

#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_vision {
namespace {

using Pair = std::array<std::size_t, 2>;

void adjust_vit_model(ModelReader& reader) {
    PatchInput& input =
        patches_of(reader, "patch_embeddings.projection", {"cls_token"}, "position_embeddings");
    input.image = pair_of(reader.config, "image_size");
    if (reader.tensors.has("embeddings.distillation_token"))
        input.tokens.push_back(reader.tensors.get("embeddings.distillation_token"));
}

void adjust_ast_model(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    PatchInput& input = patches_of(reader, "patch_embeddings.projection",
                                   {"cls_token", "distillation_token"}, "position_embeddings");
    input.from = PatchInput::From::spectrogram;
    input.step = {config.positive("frequency_stride"), config.positive("time_stride")};
    input.image = {config.whole("num_mel_bins"), config.whole("max_length")};
}

void add_layer_scales(BlockReader& reader, TransformerBlock& block, AttentionPart&) {
    block.attention_scale = reader.elements("layer_scale1.lambda1", {reader.width()});
    block.ffn_scale = reader.elements("layer_scale2.lambda1", {reader.width()});
}
/// mlp_ratio times the width; a gated layer has two thirds of it, rounded up to a multiple of 8.
std::size_t dino_inner_width(const BlockReader& reader) {
    const ModelConfig& config = reader.config;
    const double all = std::floor(config.number("mlp_ratio") * static_cast<double>(reader.width()));
    if (!(all >= 0 && all < 0x1p31)) config.fail("mlp_ratio", "a factor of the model's width");
    const auto width = static_cast<std::size_t>(all);
    return config.flag("use_swiglu_ffn") ? (width * 2 / 3 + 7) / 8 * 8 : width;
}

/// Requires a position for each patch of an image of image_size, after `others`. Images of other
/// sizes resize the table.
void check_positions(const ModelReader& reader, const Parameter& table, std::size_t others) {
    const Pair image = pair_of(reader.config, "image_size"),
               patch = pair_of(reader.config, "patch_size");
    const std::vector<std::size_t>& shape = table->shape();
    const std::size_t rows = shape.size() < 2 ? 0 : shape[shape.size() - 2],
                      expected = image[0] / patch[0] * (image[1] / patch[1]) + others;
    if (rows != expected)
        throw Error(ErrorKind::input, table->location(), rows, " positions; expected ", expected,
                    " by image_size in ", reader.config.location());
}

void adjust_dinov2_model(ModelReader& reader) {
    PatchInput& input =
        patches_of(reader, "patch_embeddings.projection", {"cls_token"}, "position_embeddings");
    const bool has_registers = reader.row.type == "dinov2_with_registers";
    if (has_registers && reader.config.whole("num_register_tokens") != 0)
        input.registers =
            reader.tensors.get("embeddings.register_tokens",
                               {1, reader.config.whole("num_register_tokens"), input.width});
    check_positions(reader, input.positions, 1);
    input.resize = has_registers ? Resize::bicubic_smooth : Resize::bicubic;
}

/// Biases of the scores of a class token and patches: rows of a table by the distances between two
/// patches in rows and columns, and three of the class token.
std::vector<double> beit_bias(const BlockReader& reader, const std::string& name, std::size_t heads,
                              const Pair& grid) {
    const Pair patch = pair_of(reader.config, "patch_size"),
               image = pair_of(reader.config, "image_size");
    const Pair trained{image[0] / patch[0], image[1] / patch[1]};
    if (trained[0] == 0 || trained[1] == 0) reader.config.fail("image_size", "at least patch_size");
    const std::size_t old_rows = 2 * trained[0] - 1, old_columns = 2 * trained[1] - 1,
                      rows = 2 * grid[0] - 1, columns = 2 * grid[1] - 1;
    const std::vector<double> stored =
        elements_of(reader.tensors.get(name, {old_rows * old_columns + 3, heads}));
    const auto end = stored.end() - static_cast<std::ptrdiff_t>(3 * heads);
    // The model takes the table as (columns, rows) before it resizes it.
    std::vector<double> table =
        resized({stored.begin(), end}, old_columns, old_rows, rows, columns, Resize::bilinear);
    table.insert(table.end(), end, stored.end());
    const std::size_t count = grid[0] * grid[1] + 1, of_class = rows * columns;
    std::vector<double> bias(heads * count * count);
    for (std::size_t q = 0; q < count; ++q)
        for (std::size_t k = 0; k < count; ++k) {
            std::size_t row = of_class + (q == 0 ? 0 : 1);
            if (q == 0 && k == 0) row = of_class + 2;
            if (q != 0 && k != 0)
                row = ((q - 1) / grid[1] + grid[0] - 1 - (k - 1) / grid[1]) * columns +
                      (q - 1) % grid[1] + grid[1] - 1 - (k - 1) % grid[1];
            for (std::size_t h = 0; h < heads; ++h)
                bias[(h * count + q) * count + k] += table[row * heads + h];
        }
    return bias;
}
void adjust_beit(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    if (reader.tensors.has(reader.full("lambda_1"))) {
        block.attention_scale = reader.elements("lambda_1", {reader.width()});
        block.ffn_scale = reader.elements("lambda_2", {reader.width()});
    }
    const Pair grid = grid_of(reader);
    std::vector<double> bias;
    const auto add = [&](const std::string& module) {
        const std::vector<double> own =
            beit_bias(reader, module + "relative_position_bias.relative_position_bias_table",
                      part.heads, grid);
        bias.resize(own.size());
        for (std::size_t i = 0; i < own.size(); ++i) bias[i] += own[i];
    };
    if (reader.config.flag("use_shared_relative_position_bias")) add("encoder.");
    if (reader.config.flag("use_relative_position_bias")) add(reader.full("attention.attention."));
    if (!bias.empty()) part.bias = FixedBias{std::move(bias)};
}
void adjust_beit_model(ModelReader& reader) {
    const bool has_table = reader.config.flag("use_absolute_position_embeddings");
    PatchInput& input = patches_of(reader, "patch_embeddings.projection", {"cls_token"},
                                   has_table ? "position_embeddings" : nullptr);
    input.resize = Resize::bicubic;
    if (!reader.config.flag("use_mean_pooling", true))
        reader.spec.final_norm = reader.norm("layernorm");
}

void adjust_clip_model(ModelReader& reader) {
    PatchInput& input =
        patches_of(reader, "patch_embedding", {"class_embedding"}, "position_embedding.weight");
    input.image = pair_of(reader.config, "image_size");
    input.norm = reader.norm("pre_layrnorm");
}
void adjust_siglip_model(ModelReader& reader) {
    PatchInput& input = patches_of(reader, "patch_embedding", {}, "position_embedding.weight");
    check_positions(reader, input.positions, 0);
}
void adjust_siglip2_model(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    PatchInput input;
    input.from = PatchInput::From::patches;
    input.width = config.whole("hidden_size");
    const Pair patch = pair_of(config, "patch_size");
    input.map =
        reader.tensors.linear("embeddings.patch_embedding",
                              config.whole("num_channels") * patch[0] * patch[1], input.width);
    input.positions = reader.tensors.get("embeddings.position_embedding.weight",
                                         {config.whole("num_patches"), input.width});
    input.resize = Resize::bilinear_smooth;
    input.always_resizes = true;
    reader.spec.input = std::move(input);
}

/// Patches turn by the row and the column of their centre, in [-1, 1]; tokens before them do not.
std::shared_ptr<const std::vector<double>> dinov3_table(const BlockReader& reader,
                                                        std::size_t width) {
    const Pair grid = grid_of(reader);
    const std::size_t before = 1 + reader.config.whole("num_register_tokens"), quarter = width / 4;
    const double base = reader.config.number("rope_theta");
    auto table = std::make_shared<std::vector<double>>();
    for (std::size_t i = 0; i < before * width / 2; ++i) table->insert(table->end(), {1.0, 0.0});
    for (std::size_t p = 0; p < grid[0] * grid[1]; ++p)
        for (std::size_t axis = 0; axis < 2; ++axis)
            for (std::size_t i = 0; i < quarter; ++i) {
                const std::size_t at = axis == 0 ? p / grid[1] : p % grid[1];
                const double centre =
                    2 * (static_cast<double>(at) + 0.5) / static_cast<double>(grid[axis]) - 1;
                const double angle =
                    2 * std::numbers::pi * centre /
                    std::pow(base, static_cast<double>(4 * i) / static_cast<double>(width));
                table->insert(table->end(), {std::cos(angle), std::sin(angle)});
            }
    return table;
}
void adjust_dinov3(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    add_layer_scales(reader, block, part);
    if (part.d_k % 4 != 0)
        reader.config.fail("num_attention_heads",
                           "a number of heads whose width is a multiple of 4");
    Rotation rotation;
    rotation.rope.dims = part.d_k;
    rotation.frequencies.resize(part.d_k / 2);
    rotation.table = dinov3_table(reader, part.d_k);
    part.rotation = std::move(rotation);
}
void adjust_dinov3_model(ModelReader& reader) {
    PatchInput& input = patches_of(reader, "patch_embeddings", {"cls_token"}, nullptr);
    if (const std::size_t count = reader.config.whole("num_register_tokens"); count != 0)
        input.registers = reader.tensors.get("embeddings.register_tokens", {1, count, input.width});
}

constexpr RowFunction functions[] = {
    NAMED(adjust_vit_model),     NAMED(adjust_ast_model),    NAMED(add_layer_scales),
    NAMED(dino_inner_width),     NAMED(adjust_dinov2_model), NAMED(adjust_beit),
    NAMED(adjust_beit_model),    NAMED(adjust_clip_model),   NAMED(adjust_siglip_model),
    NAMED(adjust_siglip2_model), NAMED(adjust_dinov3),       NAMED(adjust_dinov3_model)};

}  // namespace
}  // namespace attn::io::rows_vision

constinit const attn::io::RowFunctions attn::io::vision_functions = rows_vision::functions;
