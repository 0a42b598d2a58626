// The bits of PyTorch's softmax and sums (data/golden/torch_bits.json), for every row length, size
// of the numbers and kernel; dropout masks: values, order of draws, separate rows.
#include <type_traits>

#include "core/base/torch_random.hpp"
#include "core/fused/tile_dropout.hpp"
#include "core/kernels/dispatch.hpp"
#include "core/operator/attention.hpp"
#include "core/operator/dropout.hpp"
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

/// Decisions one at a time, as the double comparison of each element's uniform with 1 - p.
class KeepOneByOne {
public:
    KeepOneByOne(double p, DropoutStream stream, TorchGenerator generator)
        : keep_probability_(1 - p), generator_(generator) {
        if (stream == DropoutStream::mkl) mkl_.emplace(generator_.draw32());
    }

    double uniform() { return mkl_ ? mkl_->next() : generator_.uniform01<double>(); }
    bool next() { return uniform() < keep_probability_; }
    void skip(std::uint64_t count) { mkl_ ? mkl_->skip(count) : generator_.skip(2 * count); }

private:
    double keep_probability_;
    TorchGenerator generator_;
    std::optional<Mcg31> mkl_;
};

bool bit(const std::vector<std::uint64_t>& words, std::size_t i) {
    return ((words[i / 64] >> (i % 64)) & 1) != 0;
}

constexpr DropoutStream streams[] = {DropoutStream::mt19937, DropoutStream::mkl};

TEST_CASE("keep bits are the elements' own draws, over odd counts and skips, from every kernel") {
    for (const kernels::Kernel* kernel : kernels::supported())
        for (DropoutStream stream : streams)
            for (double p : {1e-20, 0.1, 0.5, 0.9, 1 - 0x1p-53})
                for (std::uint64_t seed : {1u, 77u}) {
                    TorchGenerator generator(seed);
                    generator.skip(seed);  // odd: pairs of draws lie across the engine's blocks
                    KeepOneByOne single(p, stream, generator);
                    KeepBits bits(p, stream, generator, kernel->table->draws);
                    for (std::size_t count : {1u, 63u, 64u, 65u, 311u, 312u, 313u, 1000u}) {
                        CAPTURE(kernel->name);
                        CAPTURE(p);
                        CAPTURE(count);
                        std::vector<std::uint64_t> words((count + 63) / 64, ~std::uint64_t{0});
                        bits.next(words.data(), count);
                        for (std::size_t i = 0; i < 64 * words.size(); ++i)
                            REQUIRE(bit(words, i) == (i < count && single.next()));
                        bits.skip(count + 5);
                        for (std::size_t i = 0; i < count + 5; ++i) single.next();
                    }
                }
}

TEST_CASE("keep bits far on are those of a generator that skipped as many draws") {
    for (const kernels::Kernel* kernel : kernels::supported())
        for (DropoutStream stream : streams)
            for (std::uint64_t count :
                 {311ull, 312ull, 4193968ull, 4194592ull, 1ull << 40, 1ull << 62})
                for (std::size_t before : {0u, 311u}) {
                    CAPTURE(kernel->name);
                    CAPTURE(count);
                    CAPTURE(before);
                    std::vector<std::uint64_t> words(10);
                    TorchGenerator generator(5);
                    KeepBits bits(0.3, stream, generator, kernel->table->draws);
                    bits.next(words.data(), before);
                    bits.skip(count);
                    bits.next(words.data(), 640);
                    KeepOneByOne single(0.3, stream, TorchGenerator(5));
                    single.skip(before + count);
                    for (std::size_t i = 0; i < 640; ++i) REQUIRE(bit(words, i) == single.next());
                }
}

TEST_CASE("an element is kept where its uniform is below 1 - p, and not where they are equal") {
    for (const kernels::Kernel* kernel : kernels::supported())
        for (DropoutStream stream : streams)
            for (std::uint64_t seed = 0; seed < 60; ++seed) {
                // The element whose uniform is met, and another, which is not touched by it.
                const std::uint64_t place = 5 * seed;
                KeepOneByOne drawn(0.5, stream, TorchGenerator(seed));
                drawn.skip(place);
                const double uniform = drawn.uniform();
                // mt19937: 1 - (1 - uniform) is uniform itself, a multiple of 2^-53.
                for (int step = -4; step <= 4; ++step) {
                    CAPTURE(kernel->name);
                    CAPTURE(seed);
                    CAPTURE(step);
                    const double p = 1 - uniform + step * 0x1p-53;
                    if (p <= 0 || p >= 1) continue;
                    std::vector<std::uint64_t> words(5);
                    TorchGenerator generator(seed);
                    KeepBits(p, stream, generator, kernel->table->draws).next(words.data(), 312);
                    CHECK(bit(words, place) == (uniform < 1 - p));
                    if (stream == DropoutStream::mt19937) CHECK(bit(words, place) == (step < 0));
                    KeepOneByOne single(p, stream, TorchGenerator(seed));
                    for (std::size_t i = 0; i < 312; ++i) REQUIRE(bit(words, i) == single.next());
                }
            }
}

TEST_CASE("dropout: the mask of PyTorch for every seed on file") {
    const auto golden = test::load_data("golden/torch_random.json");
    for (const auto& recorded : golden["seeds"]) {
        const TorchGenerator generator(test::seed_bits(recorded["seed"]));
        const auto mask = dropout_mask<float>(
            Dropout{0.2, DropoutStream::mt19937, false, 4, generator}, 0, {1, 1, 4, 5});
        const std::vector<double> expected = test::flat(recorded["dropout"]);
        for (std::size_t i = 0; i < expected.size(); ++i)
            CHECK(static_cast<double>(mask.data()[i]) == expected[i]);
    }
}

TEST_CASE("dropout: probabilities 0 and 1 need no generator") {
    for (double p : {0.0, 1.0})
        for (DropoutStream stream : streams)
            for (double value : dropout_mask<double>(Dropout{p, stream, false, 3}, 0, {2, 1, 3, 3}))
                CHECK(value == 1 - p);
}

}  // namespace
}  // namespace torch_bits_test
