// The data that the page carries, read as it is chosen: what io/plot/html.cpp says, packed as
// io/plot/packed.hpp says.
'use strict';

const element = (id) => document.getElementById(id);
const contents = JSON.parse(element('contents').textContent);

const maps = [];  // each is parsed when it is first chosen

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

/// Reads bits of packed text, highest first, zeros behind the end.
class BitReader {
    constructor(text) {
        this.text = text;
        this.at = this.bits = this.held = 0;
    }
    /// The next bits, at most 19, without reading them.
    peek(count) {
        while (this.held < count) {
            const high = digitOf[this.text.charCodeAt(this.at)] * 91;
            this.bits = this.bits << 13 | high + digitOf[this.text.charCodeAt(this.at + 1)];
            this.at += 2;
            this.held += 13;
        }
        return this.bits >>> (this.held - count) & (1 << count) - 1;
    }
    take(count) {
        if (count > 16) {
            const high = this.take(count - 16);
            return high * 65536 + this.take(16);
        }
        const value = this.peek(count);
        this.held -= count;
        return value;
    }
}

/// For each way in which the next `longest` bits may begin: 16 times the symbol, and its length.
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

/// For each binade, a whole mantissa's step and the number that it begins with.
function binadesOf({binades, mantissa_bits: kept}, exponentBits) {
    const bias = 2 ** (exponentBits - 1) - 1, sign = 2 ** exponentBits;
    return binades.map((binade) => {
        const exponent = binade % sign, unit = (binade < sign ? 1 : -1) * 2 ** (Math.max(exponent, 1) - bias);
        return {begin: exponent ? unit : 0 * unit, step: unit * 2 ** -kept};
    });
}

function unpack(of, packed, text, flags, numbers) {
    const {lengths, mantissa_bits: kept} = packed;
    const whole = packed.whole.map((number) => number ?? NaN), wholes = whole.length;
    const binades = binadesOf(packed, of.float32 ? 8 : 11);
    const longest = lengths.reduce((most, length) => Math.max(most, length), 0);
    const table = codeTable(lengths, longest), reader = new BitReader(text);
    for (let i = 0; i < numbers.length; ++i) {
        if (flags[i]) continue;
        const entry = table[reader.peek(longest)], symbol = entry >> 4;
        reader.held -= entry & 15;
        if (symbol < wholes) {
            numbers[i] = whole[symbol];
        } else {
            const {begin, step} = binades[symbol - wholes];
            numbers[i] = begin + step * reader.take(kept);
        }
    }
}

function flagsOf(of, mask, size) {
    if (mask === null) return new Uint8Array(size);
    if (of.lastMask === mask) return of.lastFlags;
    const held = of.masks[mask];
    of.lastMask = mask;
    if (Array.isArray(held)) return of.lastFlags = Uint8Array.from(held);
    const reader = new BitReader(held);
    of.lastFlags = new Uint8Array(size);
    for (let i = 0; i < size; ++i) of.lastFlags[i] = reader.take(1);
    return of.lastFlags;
}

const mostDecoded = 64e6;  // bytes of matrices whose packed text stays beside them
const decoded = new Map();  // the one that was not wanted for longest first

/// The numbers of a matrix of an array, row by row, and which are blocked. What packed text says is
/// read anew when it has not been wanted for long; who holds on to it may do so.
function numbersOf(of, index) {
    const part = of.panels[index], size = of.rows.size * of.columns.size;
    let found = decoded.get(part);
    decoded.delete(part);
    if (!found) {
        const flags = flagsOf(of, part.mask, size);
        const Floats = of.float32 ? Float32Array : Float64Array;
        const numbers = part.values ? Floats.from(part.values, (value) => value ?? NaN) : new Floats(size);
        if (part.packed) unpack(of, part.packed, element(part.textAt).textContent, flags, numbers);
        found = {numbers, flags, hasBlocked: part.mask !== null};
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

/// The shortest decimal that reads back as the same float32 or float64; where a page's numbers are
/// rounded, the digits that it has.
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
