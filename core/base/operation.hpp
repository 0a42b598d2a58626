// The operations and variables of formulas, which kernels know too: plain enumerations.
#pragma once

namespace attn {

enum class Operation {
    number,
    variable,
    element,
    to_real,  // leaves, an array's element, an integer as a real number
    conditional,
    logical_or,
    logical_and,
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,
    add,
    subtract,
    multiply,
    divide,
    floor_divide,
    modulo,
    negate,
    logical_not,
    min,
    max,
    abs,
    floor,
    exp,
    log,
    sqrt,
    tanh,
    pow
};

/// What a formula may name, besides arrays. Positions of queries are counted as the causal mask
/// counts them: cached keys come first.
enum class Variable { score, p, b, h, q, k, qpos, kpos, q_len, kv_len, heads };

}  // namespace attn
