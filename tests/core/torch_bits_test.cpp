// The bits of PyTorch's softmax and sums (data/golden/torch_bits.json), for every row length, size
// of the scores and mask; scores are drawn here as tests/make_torch_bits.py draws them.
#include <type_traits>

#include "core/base/torch_random.hpp"
#include "core/operator/attention.hpp"
#include "tests/support/support.hpp"

namespace torch_bits_test {
namespace {

using namespace attn;
using nlohmann::json;

std::string hex(std::uint64_t value, std::size_t digits) {
    std::string text;
    while (digits-- != 0) text += "0123456789abcdef"[value >> (4 * digits) & 15];
    return text;
}

template <class T>
std::uint64_t bits_of(T value) {
    return std::bit_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(value);
}

/// The low 32 bits.
template <class T>
std::string hash_of(const Tensor4<T>& values) {
    return hex(test::hash_of_bytes(values) & 0xffffffff, 8);
}

template <class T>
std::string all_bits_of(const Tensor4<T>& values) {
    std::string text;
    for (T value : values) text += hex(bits_of(value), 2 * sizeof(T));
    return text;
}

/// The weights of one query of 1 on keys of one number each: its scores are the keys, (1, rows, 1,
/// keys). Row 0 sees all keys, row 1 those that are kept.
template <class T>
struct Rows {
    Rows(std::size_t length, std::size_t at, double magnitude) {
        TorchGenerator generator(100 * length + at);
        keys = Tensor4<T>::from_shape({1, 1, length, 1});
        for (T& key : keys) key = generator.uniform<T>(-magnitude, magnitude);
        kept = Array<double>::from_shape({length});
        // What PyTorch compares with is rounded to float32.
        for (double& keep : kept) keep = generator.uniform01<float>() < 0.7f ? 1 : 0;
        kept(length / 2) = 1;
    }

    AttentionCall<T> call(bool masked) const {
        AttentionCall<T> call;
        call.query = Tensor4<T>::from_shape({1, 1, 1, 1});
        call.query.fill(T{1});
        call.key = call.value = keys;
        Array<double> allowed = kept;
        allowed.reshape({1, kept.size()});
        if (masked) call.mask.add(BroadcastRule(allowed, true));
        return call;
    }

    Tensor4<T> weights(const AttentionCall<T>& call) const {
        Recorder recorder({"attention_weights"}, {});
        attend(call, recorder);
        return Tensor4<T>(std::get<Array<T>>(recorder.take().at(0).values));
    }

    /// (1, 2, 1, keys)
    Tensor4<T> softmax() const {
        const Tensor4<T> all = weights(call(false)), some = weights(call(true));
        Tensor4<T> both = Tensor4<T>::from_shape({1, 2, 1, kept.size()});
        std::copy(all.begin(), all.end(), both.begin());
        std::copy(some.begin(), some.end(), both.data() + kept.size());
        return both;
    }

    Tensor4<T> renormalized() const {
        AttentionCall<T> masked = call(true);
        masked.mask_method = MaskMethod::renormalize;
        return weights(masked);
    }

    Tensor4<T> keys;
    Array<double> kept;
};

std::string piece(const json& text, std::size_t i) {
    return text.get_ref<const std::string&>().substr(8 * i, 8);
}

const json& golden() {
    static const json file = test::load_data("golden/torch_bits.json");
    return file;
}

template <class T>
const json& golden_of() {
    return golden()[std::is_same_v<T, float> ? "float32" : "float64"];
}

TEST_CASE_TEMPLATE("torch bits: the softmax of every length and magnitude, masked or not", T, float,
                   double) {
    const json& expected = golden_of<T>();
    for (const std::size_t length : golden()["lengths"])
        for (std::size_t at = 0; at < expected["magnitudes"].size(); ++at) {
            CAPTURE(length);
            const double magnitude = expected["magnitudes"][at];
            CAPTURE(magnitude);
            const Tensor4<T> weights = Rows<T>(length, at, magnitude).softmax();
            const std::string name = std::to_string(length);
            if (expected["softmax_bits"].contains(name))
                CHECK(all_bits_of(weights) == expected["softmax_bits"][name][at]);
            CHECK(hash_of(weights) == piece(expected["softmax"][name], at));
        }
}

TEST_CASE_TEMPLATE("torch bits: renormalized weights of every length", T, float, double) {
    const json& expected = golden_of<T>();
    const std::size_t at = golden()["renormalized_magnitude"];
    for (std::size_t i = 0; i < golden()["lengths"].size(); ++i) {
        const std::size_t length = golden()["lengths"][i];
        CAPTURE(length);
        const Rows<T> rows(length, at, expected["magnitudes"][at]);
        CHECK(hash_of(rows.renormalized()) == piece(expected["renormalized"], i));
    }
}

TEST_CASE_TEMPLATE("torch bits: the mean over 1 to 300 heads", T, float, double) {
    for (const auto& [name, expected] : golden_of<T>()["mean_over_heads"].items())
        for (std::size_t i = 0; i < golden()["columns"].size(); ++i) {
            const std::size_t heads = std::stoul(name), columns = golden()["columns"][i];
            CAPTURE(heads);
            CAPTURE(columns);
            TorchGenerator generator(1000 * heads + columns);
            Tensor4<T> weights = Tensor4<T>::from_shape({1, heads, 1, columns});
            for (T& weight : weights) weight = generator.uniform<T>(0, 1);
            Recorder recorder({"attention_weights"}, {.average_heads = true});
            recorder.record("attention_weights", weights);
            Array<T> mean = std::get<Array<T>>(recorder.take().at(0).values);
            mean.reshape({1, 1, 1, columns});
            CHECK(hash_of(Tensor4<T>(mean)) == piece(expected, i));
        }
}

}  // namespace
}  // namespace torch_bits_test
