#include "core/operator/cuda_dropout.hpp"

#include <cmath>

namespace attn {
namespace {

/// The first word, or 2^32, whose number does not satisfy `is_below`, which is monotonic.
template <class IsBelow>
std::uint64_t first_word(const IsBelow& is_below) {
    std::uint64_t low = 0, high = std::uint64_t{1} << 32;
    while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        if (is_below(cuda_uniform(static_cast<std::uint32_t>(middle))))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/// The kernel flash's: of each head 32 lanes.
constexpr std::uint64_t lanes = 32;

}  // namespace

CudaDropout::CudaDropout(const Dropout& d, std::size_t batch, std::size_t heads,
                         std::size_t columns)
    : offset_(d.cuda->offset()), head_by_head_(d.head_by_head),
      draws_bytes_(d.kernel == DropoutKernel::flash), heads_(heads), q_len_(d.q_len),
      columns_(columns) {
    const std::uint64_t matrices = std::uint64_t{batch} * (head_by_head_ ? 1 : heads),
                        size = matrices * q_len_ * columns;
    CudaGenerator after = *d.cuda;
    run_ = d.cuda->run(0, size, 1);
    const auto p = static_cast<float>(d.p);
    if (draws_bytes_) {
        after.skip(lanes * matrices);
        run_.rounds = 7;
        run_.unit_shift = 2;
        run_.turn_shift = 0;
        run_.threads = std::uint64_t{1} << 32;
        run_.high_shift = 32;
        last_ = static_cast<std::uint32_t>(std::floor(double{1.0f - p} * 255));
    } else if (d.kernel == DropoutKernel::efficient) {
        after.skip((size + 3) / 4 * 4);
        run_.unit_shift = 63;
        run_.turn_shift = 0;
        const std::uint64_t first = first_word([p](float u) { return u <= p; });
        keeps_none_ = first >> 32 != 0;
        first_ = static_cast<std::uint32_t>(first);
        last_ = ~first_;
    } else {
        // math computes weights in float32, whatever the type of the operands.
        const std::size_t bytes = d.kernel ? sizeof(float) : d.element_size;
        vector_ = static_cast<unsigned>(16 / bytes);
        while (vector_ > 1 && size % vector_ != 0) vector_ /= 2;
        run_.unit_shift = vector_ == 8 ? 1 : 0;
        if (vector_ != 1) run_.turn_shift = 0;
        after.finish(size, 1);
        const double keep = 1 - d.p;
        const std::uint64_t end = first_word([&](float u) {
            return bytes == sizeof(double) ? double{u} < keep : u < static_cast<float>(keep);
        });
        keeps_none_ = end == 0;
        last_ = static_cast<std::uint32_t>(end - 1);
    }
    offset_of_call_ = after.offset() - offset_;
    end_offset_ = offset_ + offset_of_call_ * (head_by_head_ ? heads : 1);
}

std::uint64_t CudaDropout::element(std::size_t b, std::size_t h, std::size_t q,
                                   std::size_t k) const {
    const std::uint64_t matrix = head_by_head_ ? b : b * heads_ + h;
    return (matrix * q_len_ + q) * columns_ + k;
}

PhiloxRun CudaDropout::run(std::size_t b, std::size_t h, std::size_t q, std::size_t k) const {
    PhiloxRun run = run_;
    const std::uint64_t offset = offset_ + (head_by_head_ ? h * offset_of_call_ : 0);
    if (draws_bytes_) {
        run.first = offset + (head_by_head_ ? b : b * heads_ + h) * lanes + q % 8 * 4;
        run.unit = k % 8 / 2;
        run.thread = k / 32;
        run.high = q / 16;
        return run;
    }
    const std::uint64_t unit = element(b, h, q, k) / this->unit(), vector = unit >> run.unit_shift;
    run.first = offset / 4;
    run.unit = unit - (vector << run.unit_shift);
    run.thread = vector % run.threads;
    run.turn = vector / run.threads;
    return run;
}

unsigned CudaDropout::word_of(std::size_t b, std::size_t h, std::size_t q, std::size_t k,
                              std::uint64_t turn) const {
    if (draws_bytes_) return static_cast<unsigned>(k % 32 / 8);
    return static_cast<unsigned>(vector_ == 1 ? turn % 4 : element(b, h, q, k) % unit());
}

bool CudaDropout::keeps(std::size_t b, std::size_t h, std::size_t q, std::size_t k) const {
    const PhiloxRun counters = run(b, h, q, k);
    const PhiloxRun::Counter at = counters.at(0);
    const std::uint32_t word = counters.words(at)[word_of(b, h, q, k, at.turn)];
    if (draws_bytes_) return (word >> (8 * byte_of(q, k)) & 0xff) <= last_;
    return !keeps_none_ && word - first_ <= last_;
}

}  // namespace attn
