import type { Report } from "./report";
import { counted } from "./format";

/** Problems that need an action: files, and groups of duplicates. Outliers may be in the right cluster. */
export interface OpenProblems {
  unreadable: number;
  exact: number;
  near: number;
}

export function openProblems({ problems, review }: Report): OpenProblems {
  const { counts } = problems;
  const isNew = (image: number): boolean => !review.isReviewed(image);
  // A group is done once at most one of its images is not reviewed. Lists may be cut: the rest counts as open.
  const open = (groups: number[][]): number => groups.filter((group) => group.filter(isNew).length > 1).length;
  return {
    unreadable: counts.unreadable,
    exact: open(problems.exact) + counts.exact - problems.exact.length,
    near: open(problems.near) + counts.near - problems.near.length,
  };
}

export const total = ({ unreadable, exact, near }: OpenProblems): number => unreadable + exact + near;

/** The problems that are open, in words. */
export function problemText({ unreadable, exact, near }: OpenProblems): string {
  const parts = [
    [unreadable, "unreadable file"],
    [exact + near, exact === 0 ? "group of near duplicates" : "group of duplicates"],
  ] as const;
  const words = parts.filter(([found]) => found > 0).map(([found, thing]) => counted(found, thing));
  return words.join(", ");
}

/** The questions that are not answered yet. */
export function openQuestions({ questions, review }: Report): number[] {
  return [...questions.keys()].filter((image) => !review.isReviewed(image));
}
