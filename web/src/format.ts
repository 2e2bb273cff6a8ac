const whole = new Intl.NumberFormat("en");

export const count = (value: number): string => whole.format(value);
export const percent = (share: number, digits = 0): string => `${(100 * share).toFixed(digits)}%`;
export const fixed = (value: number, digits = 3): string => value.toFixed(digits).replace(/^-(?=0\.?0*$)/, ""); // no −0.00
/** A count with its noun; of several words the first takes the plural. */
export const counted = (value: number, thing: string): string => `${count(value)} ${value === 1 ? thing : thing.replace(/(?= of |$)/, "s")}`;
export const images = (value: number): string => counted(value, "image");

const SCORES: Record<string, string> = {
  accuracy: "Accuracy",
  nmi: "NMI",
  ari: "ARI",
  ami: "AMI",
  total: "sum",
  alignment: "alignment of views",
  psa: "positive sampling alignment (psa)",
  psl: "prototype scattering (psl)",
  contrast: "contrast of images",
  pull: "pull of neighbours",
  churn: "moved",
  imbalance_ratio: "smallest / largest",
  smallest_cluster: "smallest",
  largest_cluster: "largest",
};

/** The display name of a curve or score. */
export const displayName = (key: string): string => SCORES[key] ?? key;
