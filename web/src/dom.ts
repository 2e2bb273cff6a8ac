export type Child = Node | string | number | null | false;
type Value = string | number | boolean | null | undefined | ((event: never) => void);

/** Make an element. Text is always text: nothing a person named a file can become markup. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Value> = {},
  ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  fill(element, children.flat());
  return element;
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, Value> = {},
  ...children: (Child | Child[])[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(element, attributes);
  fill(element, children.flat());
  return element;
}

/** Replace what is in an element. */
export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  fill(parent, children);
}

/** Give an element these children in this order; existing ones are not touched. */
export function arrange(parent: Element, children: readonly Element[]): void {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  let next = parent.firstElementChild;
  for (const child of children) {
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
  }
}

/** Set or remove an attribute only if it changes: setting it redraws the element. */
export function mark(element: Element, name: string, value: string | null): void {
  if (element.getAttribute(name) === value) return;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/** An element whose content is rebuilt only if it changes. */
export class Pane<E extends HTMLElement = HTMLElement> {
  private shown: string | null = null;

  constructor(
    readonly element: E,
    private readonly inside: HTMLElement = element,
  ) {}

  show(what: unknown, make: () => Child[]): void {
    const shows = JSON.stringify(what);
    if (shows === this.shown) return;
    this.shown = shows;
    replace(this.inside, ...make());
  }
}

function setAttributes(element: Element, attributes: Record<string, Value>): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
}

function fill(parent: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Whether a key belongs to the browser, such as Ctrl and + or Alt and an arrow. */
export function isBrowserShortcut(event: KeyboardEvent): boolean {
  return event.ctrlKey || event.metaKey || event.altKey;
}
