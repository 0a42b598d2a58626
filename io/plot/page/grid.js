
// ---- Small pictures: the heads of the selected layer, and the grid of all matrices

const mostThumbnailPixels = 320;

// They are drawn as they come into view, one after the other, with pauses in which the page answers.
const waiting = new Set();
let isDraining = false;

async function drainThumbnails() {
    if (isDraining) return;
    isDraining = true;
    for (let begin = performance.now(); waiting.size > 0;) {
        const [button] = waiting;
        waiting.delete(button);
        if (button.isConnected) await drawThumbnail(button);
        if (performance.now() - begin < 12) continue;
        await pause();
        begin = performance.now();
    }
    isDraining = false;
}

const sight = new IntersectionObserver((entries) => {
    for (const {target, isIntersecting} of entries) {
        if (!isIntersecting) continue;
        sight.unobserve(target);
        waiting.add(target);
    }
    drainThumbnails();
}, {rootMargin: '100px'});

const spare = document.createElement('canvas');

function pixelsOf({clientWidth, clientHeight}) {
    const pixels = (size) => Math.min(mostThumbnailPixels, Math.max(1, Math.round(size * devicePixelRatio)));
    return {width: pixels(clientWidth), height: pixels(clientHeight)};
}

async function drawThumbnail(button) {
    const {of, panel} = button, target = button.firstChild;
    const part = panel === null ? await meanOf(of, meanPanels()) : await numbersOf(of, panel);
    if (!button.isConnected || of !== map) return;
    const {width, height} = pixelsOf(target);
    drawRaster(spare, of, part, width, height);
    target.width = width;
    target.height = height;
    const context = target.getContext('2d');
    if (part.hasMasked) {
        context.fillStyle = cssColor('--masked');
        context.fillRect(0, 0, width, height);
    }
    context.imageSmoothingEnabled = false;
    context.drawImage(spare, 0, 0, width, height);
}

/// A small picture of a matrix; null: of the mean of the selected layer's heads.
function thumbnail(panel) {
    const button = made('button', 'thumbnail', document.createElement('canvas'));
    button.of = map;
    button.panel = panel;
    button.ariaLabel = panel === null ? 'mean of heads' : map.panels[panel].title;
    button.title = button.ariaLabel;
    button.addEventListener('click', () =>
        choose({panel: panel ?? chosen.panel, isMean: panel === null, view: 'map'}));
    sight.observe(button);
    return button;
}

const thumbnailsIn = (place) => [...element(place).querySelectorAll('.thumbnail')];

/// Redraw for another scale or background.
function redrawThumbnails() {
    for (const button of [...thumbnailsIn('strip'), ...thumbnailsIn('grid')]) {
        sight.unobserve(button);
        sight.observe(button);
    }
}

// ---- The strip: one matrix per head, and which of them the lines and the mean include

/// `withoutIf(isOn)` are the heads that are then excluded.
function headSwitch(label, isOn, withoutIf) {
    const box = made('input', '');
    box.type = 'checkbox';
    box.checked = isOn;
    box.ariaLabel = `${label} in lines and mean`;
    box.addEventListener('change', () => choose({without: new Set(withoutIf(box.checked))}));
    return box;
}

function switchOf(head, label) {
    const others = () => [...chosen.without].filter((other) => other !== head);
    const box = headSwitch(label, !chosen.without.has(head), (isOn) => isOn ? others() : [...others(), head]);
    box.style.accentColor = headColor(head);
    return box;
}

function fillStrip() {
    const axis = map.axes.at(-1), panels = besides();
    element('strip').hidden = panels.length < 2 || chosen.view !== 'map';
    if (element('strip').hidden) return element('strip').replaceChildren();
    const isHeads = hasHeads();
    const items = panels.map((panel, i) => {
        const label = axisLabel(axis, i);
        const name = made('label', '', ...(isHeads ? [switchOf(i, label)] : []), label);
        return made('li', '', thumbnail(panel), name);
    });
    if (isHeads) {
        const all = headSwitch('all heads', chosen.without.size === 0,
                               (isOn) => isOn ? [] : panels.map((_, i) => i));
        items.push(made('li', '', thumbnail(null), made('label', '', all, 'mean')));
    }
    element('strip').replaceChildren(...items);
}

function markThumbnails() {
    for (const button of [...thumbnailsIn('strip'), ...thumbnailsIn('grid')])
        button.setAttribute('aria-pressed', String(chosen.isMean ? button.panel === null
                                                                 : button.panel === chosen.panel));
}

function showHeads() {
    const boxes = element('strip').querySelectorAll('input');
    for (const [head, box] of boxes.entries())
        box.checked = head < besides().length ? !chosen.without.has(head) : chosen.without.size === 0;
    const mean = thumbnailsIn('strip').find((button) => button.panel === null);
    if (mean) sight.observe(mean);
}

// ---- The grid: a row for each layer or batch entry, a column for each head

/// The number in a row; as many as fit if there is only one axis.
let gridAcross = 1;

function fillGrid() {
    const grid = element('grid'), axes = map.axes, isTable = axes.length > 1;
    const last = axes.at(-1), across = last.size;
    grid.classList.toggle('table', isTable);
    grid.style.setProperty('--across', across);
    grid.style.setProperty('--shape', Math.min(2, Math.max(0.5, map.columns.size / map.rows.size)));
    const cells = [];
    if (isTable) {
        cells.push(made('span', ''));
        for (let i = 0; i < across; ++i)
            cells.push(made('span', 'above', axisLabel(last, i)));
    }
    for (let panel = 0; panel < map.panels.length; ++panel) {
        if (isTable && panel % across === 0) {
            const places = placesOf(panel);
            cells.push(made('span', 'before', axes.slice(0, -1).map(
                (axis, i) => axisLabel(axis, places[i])).join(', ')));
        }
        const button = thumbnail(panel);
        if (!isTable) button.append(made('span', '', map.panels[panel].title));
        cells.push(button);
    }
    grid.replaceChildren(...cells);
    gridAcross = isTable ? across : 0;
}

function focusInGrid(panel) {
    const buttons = thumbnailsIn('grid');
    for (const [i, button] of buttons.entries()) button.tabIndex = i === panel ? 0 : -1;
    buttons[panel]?.focus();
    buttons[panel]?.scrollIntoView({block: 'nearest'});
}

function pressInGrid(event) {
    const buttons = thumbnailsIn('grid'), at = buttons.indexOf(event.target);
    if (at < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    const top = buttons[0].offsetTop;
    const across = gridAcross || Math.max(1, buttons.filter((button) => button.offsetTop === top).length);
    const moves = {
        ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - across, ArrowDown: at + across,
        PageUp: at - 1, PageDown: at + 1, Home: at - at % across, End: at - at % across + across - 1,
    };
    if (!Object.hasOwn(moves, event.key)) return;
    if (buttons[moves[event.key]]) focusInGrid(moves[event.key]);
    event.preventDefault();
}

function showView(before) {
    const isGrid = chosen.view === 'grid';
    element('overview').hidden = !isGrid;
    for (const id of ['columns', 'sizes', 'saves']) element(id).hidden = isGrid;
    element('all').hidden = map.panels.length < 2;
    element('all').setAttribute('aria-pressed', String(isGrid));
    if (isGrid && element('grid').of !== map) {
        fillGrid();
        element('grid').of = map;
    }
    if (isGrid) {
        element('grid').before(element('legend'));
        const {width, height} = pixelsOf(thumbnailsIn('grid')[0].firstChild);
        sayPooled(width, height);
        showLegend();
    } else {
        view.after(element('legend'));
    }
    if (before.array === null || before.view === chosen.view) return;
    if (isGrid) focusInGrid(chosen.panel);
    else view.focus({preventScroll: true});
}

element('grid').addEventListener('keydown', pressInGrid);
element('all').addEventListener('click', () => choose({view: chosen.view === 'grid' ? 'map' : 'grid'}));
document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.target.closest?.('select') || map.panels.length < 2) return;
    if (chosen.view === 'map') choose({view: 'grid'});
});
