#include "core/kernels/entries.hpp"
#include "core/kernels/vector_generic.hpp"

namespace attn::kernels {
namespace {

using Vector [[gnu::vector_size(16)]] = std::uint32_t;

struct Words : PlainWords<Vector> {
    static Vector even(Vector a, Vector b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6); }
    static Vector last_three(Vector a, Vector b) {
        return __builtin_shufflevector(a, b, 1, 2, 3, 4);
    }
    static std::uint64_t below(Vector a, Vector b) { return mask(Vector(a < b)); }
    static std::uint64_t equal(Vector a, Vector b) { return mask(Vector(a == b)); }

    static Pairs unpack_low(Pairs a, Pairs b) { return __builtin_shufflevector(a, b, 0, 2); }
    static Pairs unpack_high(Pairs a, Pairs b) { return __builtin_shufflevector(a, b, 1, 3); }

private:
    static std::uint64_t mask(Vector where) {
        where &= Vector{1, 2, 4, 8};
        where |= __builtin_shufflevector(where, where, 2, 3, 0, 1);
        return where[0] | where[1];
    }
};

}  // namespace

extern const EntryTable generic_table;
const EntryTable generic_table = table_of<Float, Double, Words>();

}  // namespace attn::kernels
