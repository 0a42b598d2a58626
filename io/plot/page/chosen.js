
// ---- What is chosen, and who is told when it changes

let map;  // the array that is shown: its axes, labels and matrices

const chosen = {
    array: null,        // its place among contents.arrays
    panel: 0,           // the matrix
    isMean: false,      // instead of it, the mean of the heads beside it
    without: new Set(), // heads that are left out of the mean and of the lines
    row: null,          // the query, as a row of the map; null until the first numbers are read
    column: 0,          // the key, as a column
    by: 'row',          // 'row': what the query attends to, 'column': who attends to the key
    scale: contents.scale,
    view: 'map',        // or 'grid': all matrices, small
};

const listeners = [];

/// `listener(before, next)` is called after each choice, with what was chosen until then, of which
/// the array is null at first, and with what was asked for.
function onChange(listener) {
    listeners.push(listener);
}

/// Whatever is asked for beyond the ends becomes the last there is.
function choose(next) {
    const before = {...chosen};
    Object.assign(chosen, next);
    if (chosen.array !== before.array) map = mapAt(chosen.array);
    const within = (index, size) => Math.min(Math.max(index, 0), size - 1);
    chosen.panel = within(chosen.panel, map.panels.length);
    chosen.column = within(chosen.column, map.columns.size);
    if (chosen.row !== null) chosen.row = within(chosen.row, map.rows.size);
    chosen.isMean &&= hasHeads();
    if (map.panels.length < 2) chosen.view = 'map';
    for (const listener of listeners) listener(before, next);
}

/// Until what has been asked for by hand has been done.
const pause = () => new Promise((go) => setTimeout(go, 0));

/// Asked for any number of times before the next frame, it is done once, then.
function oncePerFrame(act) {
    let isWaiting = false;
    return () => {
        if (isWaiting) return;
        isWaiting = true;
        requestAnimationFrame(() => {
            isWaiting = false;
            act();
        });
    };
}

/// The place of a matrix on each of the axes.
function placesOf(panel) {
    const places = [];
    for (const axis of [...map.axes].reverse()) {
        places.unshift(panel % axis.size);
        panel = Math.floor(panel / axis.size);
    }
    return places;
}

const panelAt = (places) => map.axes.reduce((at, axis, i) => at * axis.size + places[i], 0);

const hasHeads = () => map.axes.at(-1)?.name === 'head';

/// The matrices beside the chosen one: the heads of its layer and batch entry.
function besides() {
    const size = map.axes.at(-1)?.size ?? 1, first = chosen.panel - chosen.panel % size;
    return Array.from({length: size}, (_, i) => first + i);
}

/// Those of them that are not left out.
const headPanels = () => hasHeads() ? besides().filter((_, head) => !chosen.without.has(head)) : [];

/// Those that the mean is of: all where none is left.
const meanPanels = () => headPanels().length > 0 ? headPanels() : besides();

/// `head 3`, or what a layer is called.
const axisLabel = (axis, index) => axis.labels?.[index] ?? `${axis.name} ${index}`;

let lastMean = {};

/// The mean of matrices, at least one; blocked where all of them are. A weight that is blocked in
/// some is 0 there, as in --average-heads; a score has no number there and does not count.
async function meanOf(of, panels) {
    const key = panels.join();
    if (lastMean.of === of && lastMean.key === key) return lastMean.mean;
    let mean = null, counts;
    for (const panel of panels) {
        const {numbers, flags, hasBlocked} = await numbersOf(of, panel);
        mean ??= {numbers: new Float64Array(numbers.length), flags: new Uint8Array(numbers.length),
                  hasBlocked: false, meanOf: panels.length};
        counts ??= new Uint16Array(numbers.length);
        mean.hasBlocked ||= hasBlocked;
        for (let i = 0; i < numbers.length; ++i) {
            if (flags[i]) continue;
            mean.numbers[i] += numbers[i];
            ++counts[i];
        }
    }
    counts.forEach((count, i) => {
        if (count > 0) mean.numbers[i] /= of.diverging ? count : panels.length;
        else mean.flags[i] = 1;
    });
    mean.lacksNumber = lacksNumber(mean.numbers, mean.flags);
    lastMean = {of, key, mean};
    return mean;
}
