// The data of the page, read when it is selected: written by io/plot/html.cpp, packed by
// io/plot/packed.hpp.
'use strict';

const element = (id) => document.getElementById(id);
const contents = JSON.parse(element('contents').textContent);

const maps = [];  // each is parsed when it is first selected

function mapAt(index) {
    if (!maps[index]) {
        const holder = element(`map-${index}`);
        maps[index] = JSON.parse(holder.textContent);
        maps[index].array = contents.arrays[index];
        maps[index].panels.forEach((part, panel) => { part.textAt = `map-${index}-${panel}`; });
        holder.remove();
    }
    return maps[index];
}

const digitOf = new Uint8Array(128);  // base 91
for (let code = 33, digit = 0; code < 127; ++code)
    if (!'"<\\'.includes(String.fromCharCode(code))) digitOf[code] = digit++;

let digits = new Uint8Array(0);  // one array for all texts, since they are long

/// The digits of packed text, two of which are 13 bits; arbitrary after the end.
function digitsOf(text) {
    if (digits.length < text.length + 8) digits = new Uint8Array(text.length + 8);
    const {written} = new TextEncoder().encodeInto(text, digits);
    for (let i = 0; i < written; ++i) digits[i] = digitOf[digits[i]];
    return digits;
}

/// For each value of the next `longest` bits: 16 times the symbol, plus its length.
function codeTable(lengths, longest) {
    const table = new Uint32Array(1 << longest);
    let at = 0;
    for (let length = 1; length <= longest; ++length)
        lengths.forEach((of, symbol) => {
            if (of !== length) return;
            const end = at + (1 << longest - length);
            table.fill(16 * symbol + length, at, end);
            at = end;
        });
    return table;
}

/// For each symbol its number, or the start of its binade, and the step of its mantissa.
function symbolsOf({whole, binades, mantissa_bits: kept}, exponentBits) {
    const bias = 2 ** (exponentBits - 1) - 1, sign = 2 ** exponentBits;
    const units = binades.map((binade) => (binade < sign ? 1 : -1) * 2 ** (Math.max(binade % sign, 1) - bias));
    return {
        begins: Float64Array.of(...whole.map((number) => number ?? NaN),
                                ...units.map((unit, i) => binades[i] % sign ? unit : 0 * unit)),
        steps: Float64Array.of(...whole.map(() => 0), ...units.map((unit) => unit * 2 ** -kept)),
    };
}

function unpack(of, packed, text, flags, numbers) {
    const {lengths, mantissa_bits: kept} = packed;
    const {begins, steps} = symbolsOf(packed, of.float32 ? 8 : 11), wholes = packed.whole.length;
    const longest = lengths.reduce((most, length) => Math.max(most, length), 0);
    const table = codeTable(lengths, longest), digits = digitsOf(text);
    // Bits read but not used: the lowest `held` bits. At most 19 are requested at once.
    let at = 0, bits = 0, held = 0;
    for (let i = 0; i < numbers.length; ++i) {
        if (flags[i]) continue;
        for (; held < longest; held += 13, at += 2) bits = bits << 13 | 91 * digits[at] + digits[at + 1];
        const entry = table[bits >>> (held - longest) & (1 << longest) - 1], symbol = entry >> 4;
        held -= entry & 15;
        if (symbol < wholes) {
            numbers[i] = begins[symbol];
            continue;
        }
        let mantissa = 0;
        for (let left = kept, count = kept % 16 || 16; left > 0; left -= count, count = 16) {
            for (; held < count; held += 13, at += 2) bits = bits << 13 | 91 * digits[at] + digits[at + 1];
            held -= count;
            mantissa = mantissa * 65536 + (bits >>> held & (1 << count) - 1);
        }
        numbers[i] = begins[symbol] + steps[symbol] * mantissa;
    }
}

function flagsOf(of, mask, size) {
    if (mask === null) return new Uint8Array(size);
    if (of.lastMask === mask) return of.lastFlags;
    const held = of.masks[mask];
    of.lastMask = mask;
    if (Array.isArray(held)) return of.lastFlags = Uint8Array.from(held);
    const digits = digitsOf(held);
    of.lastFlags = new Uint8Array(size);
    for (let i = 0, at = 0; i < size; i += 13, at += 2) {
        const bits = 91 * digits[at] + digits[at + 1];
        for (let bit = 0; bit < 13 && i + bit < size; ++bit) of.lastFlags[i + bit] = bits >> (12 - bit) & 1;
    }
    return of.lastFlags;
}

function lacksNumber(numbers, flags) {
    for (let i = 0; i < numbers.length; ++i)
        if (!(Math.abs(numbers[i]) < Infinity) && !flags[i]) return true;
    return false;
}

/// The text of the initial matrix precedes this script, the others follow it.
const firstText = `map-${contents.first}-0`;
const wholePage = new Promise((go) => addEventListener('DOMContentLoaded', go));
const isCut = () => document.readyState !== 'loading' && !element('end');
const hasCome = (id) => id === firstText || document.readyState !== 'loading';

const mostDecoded = 64e6;  // bytes of unpacked matrices that are cached
const decoded = new Map();  // least recently used first

/// The numbers of a matrix of an array, row by row, and which are blocked. Packed text is decoded
/// again after it is evicted; callers may keep the result. A promise if the text has not arrived
/// yet.
function numbersOf(of, index) {
    const part = of.panels[index], size = of.rows.size * of.columns.size;
    let found = decoded.get(part);
    if (!found && part.packed && !hasCome(part.textAt)) return wholePage.then(() => numbersOf(of, index));
    decoded.delete(part);
    if (!found) {
        const flags = flagsOf(of, part.mask, size);
        const Floats = of.float32 ? Float32Array : Float64Array;
        const numbers = part.values ? Floats.from(part.values, (value) => value ?? NaN) : new Floats(size);
        const text = part.packed && element(part.textAt);
        if (text?.nextElementSibling) unpack(of, part.packed, text.textContent, flags, numbers);
        else if (part.packed) numbers.fill(NaN);  // the file is truncated
        found = {numbers, flags, hasBlocked: part.mask !== null, lacksNumber: lacksNumber(numbers, flags)};
    }
    decoded.set(part, found);
    let bytes = 0;
    for (const {numbers} of decoded.values()) bytes += numbers.byteLength;
    for (const [oldest, {numbers}] of decoded) {
        if (bytes <= mostDecoded || oldest === part) break;
        bytes -= numbers.byteLength;
        decoded.delete(oldest);
    }
    return found;
}

/// The shortest decimal that reads back as the same float32 or float64; for rounded numbers, their
/// digits.
function shortest(value, of = map) {
    if (Object.is(value, -0)) return '-0';
    if (of.digits && value !== 0) return `≈ ${Number(value.toPrecision(of.digits))}`;
    if (!of.float32) return String(value);
    for (let digits = 1; digits < 9; ++digits) {
        const text = value.toPrecision(digits);
        if (Math.fround(Number(text)) === value) return String(Number(text));
    }
    return String(Number(value.toPrecision(9)));
}
