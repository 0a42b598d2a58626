
// ---- The address: the part after # records what is shown, for Back and for sharing

/// `#array=attention_weights&layer=3&head=2&row=5&scale=row`: the selection, by name.
function addressOf() {
    const words = new URLSearchParams();
    if (contents.arrays.length > 1) words.set('array', map.array);
    placesOf(chosen.panel).forEach((place, i) => {
        const isMean = chosen.isMean && i === map.axes.length - 1;
        words.set(map.axes[i].name, isMean ? 'mean' : place);
    });
    if (chosen.row !== null) words.set(chosen.by, placeOf(sideOf(chosen.by), chosen[chosen.by]));
    words.set('scale', chosen.scale);
    if (map.panels.length > 1) words.set('view', chosen.view);
    return `#${words}`;
}

/// The selection in an address; for missing or unknown names, the initial one.
function choiceOf(address) {
    const words = new URLSearchParams(address.replace(/^#/, ''));
    const among = (names, word, other) => names.includes(words.get(word)) ? words.get(word) : other;
    const array = contents.arrays.indexOf(among(contents.arrays, 'array', contents.arrays[contents.first]));
    const of = mapAt(array);
    const number = (word, size, first = 0, step = 1) => {
        const text = words.get(word) ?? '';
        const index = /^\d{1,9}$/.test(text) ? Math.floor((Number(text) - first) / step) : -1;
        return index >= 0 && index < size ? index : null;
    };
    const places = of.axes.map((axis) => number(axis.name, axis.size) ?? 0);
    const row = number('row', of.rows.size, of.rows.first, of.rows.step);
    const column = number('column', of.columns.size, of.columns.first, of.columns.step);
    const isColumn = row === null && column !== null;
    const isOfMatrix = [...of.axes.map((axis) => axis.name), 'row', 'column'].some((word) => words.has(word));
    const opensGrid = of.axes[0]?.name === 'layer' && !isOfMatrix;
    return {
        array, panel: of.axes.reduce((at, axis, i) => at * axis.size + places[i], 0),
        isMean: of.axes.at(-1)?.name === 'head' && words.get('head') === 'mean',
        by: isColumn ? 'column' : 'row', row, column: column ?? 0,
        scale: among(contents.scales, 'scale', contents.scale),
        view: among(['map', 'grid'], 'view', opensGrid ? 'grid' : 'map'),
    };
}

/// Back goes through arrays, matrices and views; rows and scales only change the address. The
/// initial selection is not written. Browsers drop changes of more than 20 a second.
let isResting = false, isWaiting = false, isStep = false;

function writeAddress(before) {
    const differs = before && ['array', 'panel', 'isMean', 'view'].some((name) => before[name] !== chosen[name]);
    if (before && (before.array === null || (before.row === null && !differs))) return;
    isStep ||= differs;
    isWaiting = isResting;
    if (isResting || addressOf() === location.hash) return;
    try {
        history[isStep ? 'pushState' : 'replaceState'](null, '', addressOf());
    } catch {
        // A frame without an address.
    }
    isStep = false;
    isResting = true;
    setTimeout(() => {
        isResting = false;
        if (isWaiting) writeAddress();
    }, 100);
}

let isFollowing = false;  // an existing address
onChange((before) => isFollowing || writeAddress(before));
addEventListener('popstate', () => {
    isFollowing = true;
    isWaiting = isStep = false;
    choose(choiceOf(location.hash));
    isFollowing = false;
});
