/** The address of Studio, or of one of its screens for this run, from a run's page that Studio shows; else null. */
export function studioAddress(screen: string | null = null): string | null {
  const { studio } = document.documentElement.dataset;
  if (studio === undefined) return null;
  const run = location.pathname.replace(/\/$/, "").split("/").at(-1) ?? "";
  return screen === null ? studio : `${studio}#/run/${run}${screen}`;
}
