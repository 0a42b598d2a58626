#include "core/operator/cuda_dropout.hpp"

#include <algorithm>
#include <cmath>

namespace attn {
namespace {

/// The first word, or 2^32, whose number does not satisfy `is_below`.
template <class IsBelow>
std::uint64_t first_word(const IsBelow& is_below) {
    return first_without(std::uint64_t{1} << 32, [&](std::uint64_t word) {
        return is_below(cuda_uniform(static_cast<std::uint32_t>(word)));
    });
}

/// Of the kernel flash, for each head.
constexpr std::uint64_t warp_size = 32;

}  // namespace

CudaDropout::CudaDropout(const Dropout& d, std::size_t batch, std::size_t heads,
                         std::size_t columns)
    : offset_(d.cuda->offset()), head_by_head_(d.head_by_head),
      draws_bytes_(d.kernel == DropoutKernel::flash), heads_(heads), q_len_(d.q_len),
      columns_(columns) {
    const std::uint64_t matrices = std::uint64_t{batch} * (head_by_head_ ? 1 : heads),
                        size = matrices * q_len_ * columns;
    CudaGenerator after = *d.cuda;
    run_ = after.run(0, size, 1);
    run_.turn_shift = 0;
    const auto p = static_cast<float>(d.p);
    if (draws_bytes_) {
        after.skip(warp_size * matrices);
        run_.rounds = 7;
        run_.unit_shift = 2;
        run_.threads = std::uint64_t{1} << 32;
        run_.high_shift = 32;
        unit_ = 8;
        kept_ = static_cast<std::uint64_t>(std::floor(double{1.0f - p} * 255)) + 1;
    } else if (d.kernel == DropoutKernel::efficient) {
        after.skip((size + 3) / 4 * 4);
        run_.unit_shift = 63;
        const std::uint64_t first = first_word([p](float u) { return u <= p; });
        first_ = static_cast<std::uint32_t>(first);
        kept_ = (std::uint64_t{1} << 32) - first;
    } else {
        // math computes weights in float32, whatever the type of the operands.
        const std::size_t bytes = d.kernel ? sizeof(float) : d.element_size;
        std::size_t vector = 16 / bytes;
        while (vector > 1 && size % vector != 0) vector /= 2;
        unit_ = static_cast<unsigned>(std::min<std::size_t>(vector, 4));
        if (vector == 8) run_.unit_shift = 1;
        if (vector == 1) run_.turn_shift = 2;
        after.finish(size, 1);
        const double keep = 1 - d.p;
        kept_ = first_word([&](float u) {
            return bytes == sizeof(double) ? double{u} < keep : u < static_cast<float>(keep);
        });
    }
    offset_of_call_ = after.offset() - offset_;
}

std::uint64_t CudaDropout::element(const At& at) const {
    return (matrix(at) * q_len_ + at.q) * columns_ + at.k;
}

PhiloxRun CudaDropout::run(const At& at) const {
    PhiloxRun run = run_;
    const std::uint64_t offset = offset_ + (head_by_head_ ? at.h * offset_of_call_ : 0);
    if (draws_bytes_) {
        run.first = offset + matrix(at) * warp_size + at.q % 8 * 4;
        run.unit = at.k % 8 / 2;
        run.thread = at.k / 32;
        run.high = at.q / 16;
        return run;
    }
    const std::uint64_t unit = element(at) / unit_, vector = unit >> run.unit_shift;
    run.first = offset / 4;
    run.unit = unit - (vector << run.unit_shift);
    run.thread = vector % run.threads;
    run.turn = vector / run.threads;
    return run;
}

unsigned CudaDropout::word_of(const At& at, const PhiloxRun& run) const {
    if (draws_bytes_) return static_cast<unsigned>(at.k % 32 / 8);
    return static_cast<unsigned>(unit_ == 1 ? run.turn % 4 : element(at) % unit_);
}

bool CudaDropout::keeps(const At& at) const {
    const PhiloxRun counters = run(at);
    const std::uint32_t word = counters.words()[word_of(at, counters)],
                        number = draws_bytes_ ? word >> (8 * byte_of(at.q, at.k)) & 0xff : word;
    return number - first_ < kept_;
}

}  // namespace attn
