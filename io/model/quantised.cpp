#include "io/model/quantised.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/low_precision.hpp"
#include "io/file/source.hpp"
#include "io/model/find_layer.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

constexpr const char* way_on = "; convert the model to GGUF or to bfloat16 safetensors";

/// Codes of 8 bits times the scale of their block of `block_rows` x `block_columns`.
class ScaledDequantiser : public Dequantiser {
public:
    ScaledDequantiser(StoredArray codes, StoredArray scales, std::size_t block_rows,
                      std::size_t block_columns)
        : codes_(std::move(codes)), scales_(std::move(scales)), rows_(codes_.shape.end()[-2]),
          columns_(codes_.shape.back()), block_rows_(block_rows), block_columns_(block_columns),
          scale_rows_(blocks(rows_, block_rows)), scale_columns_(blocks(columns_, block_columns)) {}

    static std::size_t blocks(std::size_t elements, std::size_t block) {
        return elements / block + (elements % block != 0 ? 1 : 0);
    }

    void read(std::size_t first, std::size_t count, float* to) const override {
        read_floats(codes_, first, count, to);
        std::vector<float> scales(scale_columns_);
        std::size_t scales_of = static_cast<std::size_t>(-1);
        for (std::size_t done = 0; done < count;) {
            const std::size_t row = (first + done) / columns_, column = (first + done) % columns_;
            const std::size_t scale_row = row / rows_ * scale_rows_ + row % rows_ / block_rows_;
            if (scale_row != scales_of)
                read_floats(scales_, scale_row * scale_columns_, scale_columns_, scales.data());
            scales_of = scale_row;
            const std::size_t block = column / block_columns_,
                              end = std::min(columns_, (block + 1) * block_columns_);
            const std::size_t now = std::min(count - done, end - column);
            const float scale = scales[block];
            for (std::size_t i = 0; i < now; ++i) to[done + i] *= scale;
            done += now;
        }
    }

private:
    StoredArray codes_, scales_;
    std::size_t rows_, columns_, block_rows_, block_columns_, scale_rows_, scale_columns_;
};

/// Blocks of 16 bytes: byte i holds value 2 i in its low half and 2 i + 1 in its high half.
class Mxfp4Dequantiser : public Dequantiser {
public:
    static constexpr std::size_t values = 32, bytes = 16;

    Mxfp4Dequantiser(const StoredArray& codes, const StoredArray& scales)
        : codes_(codes), scales_(scales) {}

    void read(std::size_t first, std::size_t count, float* to) const override {
        constexpr std::size_t at_once = 1024;  // blocks
        std::vector<char> codes, scales;
        std::array<float, values> decoded;
        for (std::size_t done = 0; done < count;) {
            const std::size_t block = (first + done) / values,
                              end = (first + count + values - 1) / values,
                              now = std::min(at_once, end - block);
            codes.resize(now * bytes);
            scales.resize(now);
            codes_.bytes->read(codes_.offset + std::uint64_t{block} * bytes, codes.size(),
                               codes.data());
            scales_.bytes->read(scales_.offset + block, scales.size(), scales.data());
            for (std::size_t i = 0; i < now; ++i) {
                const std::size_t begin = (block + i) * values, skip = first + done - begin,
                                  taken = std::min(values - skip, count - done);
                float* const out = taken == values ? to + done : decoded.data();
                decode(codes.data() + i * bytes, scales[i], out);
                if (taken != values) std::copy_n(decoded.data() + skip, taken, to + done);
                done += taken;
            }
        }
    }

private:
    static void decode(const char* codes, char scale, float* to) {
        static constexpr std::array<float, 16> levels{0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                                                      -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
        const float factor = float_of_e8m0(static_cast<std::uint8_t>(scale));
        for (std::size_t i = 0; i < bytes; ++i) {
            const auto code = static_cast<std::uint8_t>(codes[i]);
            to[2 * i] = levels[code & 15] * factor;
            to[2 * i + 1] = levels[code >> 4] * factor;
        }
    }

    StoredArray codes_, scales_;
};

[[noreturn]] void refuse_method(const std::string& location, const std::string& found) {
    throw Error(ErrorKind::unsupported, location, found, "; expected FP8 or MXFP4", way_on);
}

/// The object "quantization_config", also that of the text part; null if there is none.
json method_of(const json& config) {
    if (!config.is_object()) return {};
    for (const json& from : {config, config.value("text_config", json::object())})
        if (from.is_object() && from.contains("quantization_config"))
            return from.at("quantization_config");
    return {};
}

void check_method(const std::string& location, const json& method) {
    if (!method.is_object()) return;
    const json name = method.value("quant_method", json());
    if (name == "fp8" || name == "mxfp4" || name.is_null()) return;
    if (name == "compressed-tensors" && method.value("format", json()) == "float-quantized") return;
    refuse_method(location, "quantization_config has quant_method " +
                                shortened(one_line(name.dump(-1, ' ', true))));
}

/// Tensors of other methods, whose elements would be taken for weights.
void check_names(const ArrayFile& file) {
    struct ForeignName {
        std::string_view ending, method;
    };
    static constexpr std::array<ForeignName, 8> foreign{
        {{".qweight", "GPTQ or AWQ"},
         {".qzeros", "GPTQ or AWQ"},
         {".g_idx", "GPTQ"},
         {".absmax", "bitsandbytes"},
         {".quant_map", "bitsandbytes"},
         {".weight_format", "bitsandbytes"},
         {".SCB", "bitsandbytes"},
         {".weight_packed", "compressed-tensors in packed form"}}};
    for (const StoredArray& array : file.arrays)
        for (const ForeignName& name : foreign)
            if (array.name.ends_with(name.ending))
                refuse_method(file.name, "the tensor \"" + one_line(shortened(array.name, 80)) +
                                             "\" is of " + std::string(name.method));
}

bool is_code(const StoredArray& array) {
    return array.type == NumberType::float8_e4m3 || array.type == NumberType::float8_e5m2;
}

class Converter {
public:
    Converter(ArrayFile file, const json& method) : file_(std::move(file)) {
        file_.index_names();
        is_quantised_ = method.is_object();
        if (is_quantised_) read_block_size(method);
    }

    ArrayFile convert() {
        ArrayFile result = file_;
        result.arrays.clear();
        result.indices = nullptr;
        for (const StoredArray& array : file_.arrays)
            if (is_code(array)) add_scaled(array);
        for (const StoredArray& array : file_.arrays) {
            const bool is_scale = scales_.contains(array.name) ||
                                  array.name.ends_with(".activation_scale") ||
                                  array.name.ends_with(".input_scale");
            if (is_scale || is_mxfp4_scales(array.name)) continue;
            const auto found = scaled_.find(array.name);
            result.arrays.push_back(found != scaled_.end() ? found->second : mxfp4(array));
        }
        result.index_names();
        return result;
    }

private:
    template <class... Parts>
    [[noreturn]] static void fail(const StoredArray& array, const Parts&... message) {
        throw Error(ErrorKind::input, array.location(), message...);
    }

    void read_block_size(const json& method) {
        const json size = method.value("weight_block_size", json());
        if (size.is_null()) return;
        const bool is_pair = size.is_array() && size.size() == 2 && size[0].is_number_integer() &&
                             size[1].is_number_integer() && size[0] > 0 && size[1] > 0;
        if (!is_pair)
            throw Error(ErrorKind::input, file_.name, "quantization_config has weight_block_size ",
                        shortened(size.dump(-1, ' ', true)),
                        "; expected two positive integers, such as [128, 128]");
        block_ = {size[0].get<std::size_t>(), size[1].get<std::size_t>()};
    }

    void add_scaled(const StoredArray& codes) {
        const StoredArray* scales = file_.find(codes.name + "_scale_inv");
        if (scales == nullptr) scales = file_.find(codes.name + "_scale");
        if (scales == nullptr && is_quantised_)
            fail(codes, "of type ", codes.type_name,
                 " without scales, with quantization_config; "
                 "expected the tensor \"",
                 codes.name,
                 block_ ? "_scale_inv\"" : "_scale_inv\" or \"" + codes.name + "_scale\"");
        if (scales == nullptr) return;
        scales_.insert(scales->name);
        if (codes.shape.size() < 2)
            fail(codes, "shape ", shape_text(codes.shape), " with a scale; expected a matrix");
        if (!scales->type || !is_float(*scales->type))
            fail(*scales, "scales of type ", one_line(shortened(scales->type_name)),
                 "; expected floating-point numbers");
        const auto [rows, columns] = block_of(codes, *scales);
        StoredArray values = codes;
        values.type = NumberType::float32;
        values.dequantiser =
            std::make_shared<const ScaledDequantiser>(codes, *scales, rows, columns);
        scaled_.emplace(codes.name, std::move(values));
    }

    /// The rows and columns that share a scale.
    std::pair<std::size_t, std::size_t> block_of(const StoredArray& codes,
                                                 const StoredArray& scales) const {
        const std::size_t rows = std::max<std::size_t>(1, codes.shape.end()[-2]),
                          columns = std::max<std::size_t>(1, codes.shape.back());
        const auto shape_for = [&](std::size_t block_rows, std::size_t block_columns) {
            std::vector<std::size_t> shape = codes.shape;
            shape.end()[-2] = ScaledDequantiser::blocks(shape.end()[-2], block_rows);
            shape.back() = ScaledDequantiser::blocks(shape.back(), block_columns);
            return shape;
        };
        if (block_ && scales.shape == shape_for(block_->first, block_->second)) return *block_;
        if (scales.elements() == 1 && codes.shape.size() == 2) return {rows, columns};
        if (!block_ && scales.shape == shape_for(1, columns)) return {1, columns};
        if (!block_ && scales.shape == shape_for(rows, columns)) return {rows, columns};
        fail(scales, "scales of shape ", shape_text(scales.shape), " for a matrix of shape ",
             shape_text(codes.shape), "; expected ",
             block_ ? shape_text(shape_for(block_->first, block_->second)) +
                          ", by weight_block_size of config.json"
                    : "one, one for each row, or weight_block_size in config.json");
    }

    /// NAME where the array is NAME_blocks and there is NAME_scales; else empty.
    std::string mxfp4_name(const StoredArray& array) const {
        constexpr std::string_view ending = "_blocks";
        const bool is_plain =
            array.type == NumberType::uint8 && array.zip == nullptr && array.strides.empty();
        if (!is_plain || !array.name.ends_with(ending)) return {};
        const std::string name = array.name.substr(0, array.name.size() - ending.size());
        return file_.find(name + "_scales") != nullptr ? name : std::string();
    }

    bool is_mxfp4_scales(const std::string& name) const {
        constexpr std::string_view ending = "_scales";
        if (!name.ends_with(ending)) return false;
        const StoredArray* blocks =
            file_.find(name.substr(0, name.size() - ending.size()) + "_blocks");
        return blocks != nullptr && !mxfp4_name(*blocks).empty();
    }

    /// The values of an array of blocks; any other array as it is.
    StoredArray mxfp4(const StoredArray& array) const {
        const std::string name = mxfp4_name(array);
        if (name.empty()) {
            if (is_quantised_ && array.name.ends_with("_blocks") && array.type == NumberType::uint8)
                fail(array,
                     "blocks without scales, with quantization_config; expected the tensor \"",
                     array.name.substr(0, array.name.size() - 6), "scales\"");
            return array;
        }
        const StoredArray& scales = *file_.find(name + "_scales");
        std::vector<std::size_t> shape = array.shape;
        const bool is_right = shape.size() >= 2 && shape.back() == Mxfp4Dequantiser::bytes;
        if (!is_right)
            fail(array, "shape ", shape_text(array.shape),
                 "; expected blocks of 16 bytes, (..., rows, columns / 32, 16)");
        shape.pop_back();
        if (scales.shape != shape || scales.type != NumberType::uint8 || scales.zip != nullptr ||
            !scales.strides.empty())
            fail(scales, "type ", one_line(shortened(scales.type_name)), " and shape ",
                 shape_text(scales.shape), "; expected U8 and ", shape_text(shape));
        shape.back() *= Mxfp4Dequantiser::values;
        StoredArray values = array;
        values.name = name;
        values.shape = std::move(shape);
        values.type = NumberType::float32;
        values.type_name = "MXFP4";
        values.size = array.size + scales.size;
        values.dequantiser = std::make_shared<const Mxfp4Dequantiser>(array, scales);
        return values;
    }

    ArrayFile file_;
    bool is_quantised_ = false;  ///< by the config
    std::optional<std::pair<std::size_t, std::size_t>> block_;
    std::unordered_map<std::string, StoredArray> scaled_;
    std::unordered_set<std::string> scales_;
};

}  // namespace

ArrayFile dequantised(ArrayFile file, const json& config) {
    const json method = method_of(config);
    check_method(file.name, method);
    check_names(file);
    return Converter(std::move(file), method).convert();
}

}  // namespace attn::io
