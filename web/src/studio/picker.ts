import { Pane, el } from "../dom";
import { count, counted } from "../format";
import { notice } from "./actions";
import { type Folder, get, messageOf, post } from "./api";

const FILE = /^file:\/\//;
const TOLD = 5; // files by which a dropped folder is found

/** A browser of this machine's folders, with a field to type a path; a folder can be dropped on it. */
export class FolderPicker {
  private readonly field = el("input", { id: "path", type: "text", autocomplete: "off", spellcheck: false });
  private readonly said = notice();
  private readonly list = el("ul", { class: "folders", "aria-label": "Folders" });
  private readonly look = el("p", { class: "quiet", role: "status" });
  private readonly samples = el("div", { class: "samples" });
  private readonly use = el("button", { type: "button", class: "main", click: () => this.take() }, "Use this folder");
  private readonly pane = new Pane(this.list);
  private folder: Folder | null = null;
  readonly element: HTMLElement;

  constructor(private readonly chosen: (path: string) => void) {
    const form = el("form", { class: "row" }, el("label", { for: "path", class: "unseen" }, "Path of a folder"), this.field, el("button", { type: "submit" }, "Go"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.open(this.field.value);
    });
    this.element = el("section", { class: "picker", "aria-label": "Choose a folder" }, form, this.said, el("div", { class: "pair" }, this.list, el("div", {}, this.look, this.samples, this.use)));
    this.element.addEventListener("dragover", (event) => event.preventDefault());
    this.element.addEventListener("drop", (event) => void this.dropped(event));
    this.list.addEventListener("keydown", (event) => this.move(event));
    void this.open("");
  }

  async open(path: string, moveFocus = false): Promise<void> {
    try {
      this.folder = await get<Folder>("api/folder", path === "" ? {} : { path });
      this.said.textContent = "";
      this.show(this.folder);
      if (moveFocus) this.list.querySelector("button")?.focus();
    } catch (error) {
      this.complain(error);
    }
  }

  private show({ path, parent, folders, files, more, pictures }: Folder): void {
    this.field.value = path ?? "";
    this.use.hidden = path === null;
    this.use.textContent = `Use this folder: ${path?.split("/").at(-1) ?? ""}`;
    const line = (name: string, to: string, kind = ""): HTMLElement => el("li", {}, el("button", { type: "button", class: kind, click: () => void this.open(to, true) }, name));
    this.pane.show([path, folders], () => [
      ...(parent === null ? [] : [line("↑ The folder above", parent, "up")]),
      ...folders.map(({ name, path: to }) => line(name, to)),
      ...(folders.length === 0 ? [el("li", { class: "quiet" }, "No folders in here.")] : []),
    ]);
    this.list.querySelectorAll("button").forEach((button, at) => (button.tabIndex = at === 0 ? 0 : -1));
    this.look.textContent = path === null ? "Choose a folder." : `${counted(files, "file")} here${folders.length > 0 ? "; the images in its folders are used too" : ""}${more ? ` (only the first ${count(files + folders.length)} entries were looked at)` : ""}. ${pictures.length > 0 ? "Some pictures in it and below:" : ""}`;
    this.samples.replaceChildren(...pictures.map(sample));
  }

  private take(): void {
    if (this.folder?.path != null) this.chosen(this.folder.path);
  }

  /** Arrows, Home and End move in the list, which is one stop of the Tab key. */
  private move(event: KeyboardEvent): void {
    const buttons = [...this.list.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    const next = to === undefined ? undefined : buttons[Math.min(buttons.length - 1, Math.max(0, to))];
    if (next === undefined) return;
    event.preventDefault();
    for (const button of buttons) button.tabIndex = button === next ? 0 : -1;
    next.focus();
  }

  private async dropped(event: DragEvent): Promise<void> {
    event.preventDefault();
    const data = event.dataTransfer;
    const given = data?.getData("text/uri-list").split("\n").find((line) => FILE.test(line));
    const entry = data?.items[0]?.webkitGetAsEntry() ?? null; // gone after the first wait
    try {
      if (given !== undefined) return await this.open(decodeURIComponent(given.trim().replace(FILE, "")));
      if (entry === null || !entry.isDirectory) throw new Error("Drop a folder here, or choose one in the list.");
      const { path } = await post<{ path: string }>("api/find", { name: entry.name, files: await someFiles(entry as FileSystemDirectoryEntry) });
      await this.open(path);
    } catch (error) {
      this.complain(error);
    }
  }

  private complain(error: unknown): void {
    this.said.textContent = messageOf(error);
    this.said.classList.add("warn");
  }
}

/** The names of some files of a folder that was dropped. */
function someFiles(folder: FileSystemDirectoryEntry): Promise<string[]> {
  return new Promise((resolve, reject) => {
    folder.createReader().readEntries((entries) => resolve(entries.map(({ name }) => name).slice(0, TOLD)), reject);
  });
}

/** A picture of a folder, as its file is. */
export function sample(path: string): HTMLElement {
  return el("img", { src: `api/picture?${new URLSearchParams({ path })}`, alt: path.split("/").at(-1) ?? "", loading: "lazy" });
}
