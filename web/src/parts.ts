/** What is too large for one script: parts of the data, each a script that leaves its text in one global. */

/** Load some parts one after the other, and hand each one's text over; a part that is missing ends it with its name. */
export async function loadParts(files: readonly string[], take: (text: string, place: number) => void): Promise<void> {
  for (const [place, file] of files.entries()) {
    take(await textOf(file), place);
    delete window.PROPOS_PART;
  }
}

/** A page opened from a file may fetch nothing, but it may run a script of its folder. */
function textOf(file: string): Promise<string> {
  return new Promise((found, failed) => {
    const script = document.createElement("script");
    const end = (): void => {
      script.remove();
      if (window.PROPOS_PART === undefined) failed(new Error(file));
      else found(window.PROPOS_PART);
    };
    script.addEventListener("load", end);
    script.addEventListener("error", end);
    script.src = file;
    document.head.append(script);
  });
}
