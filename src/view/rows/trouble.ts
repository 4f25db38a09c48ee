/** What is wrong: a word of conditions and of docs/troubleshooting.md, and a sentence without a full stop. */
export interface Trouble {
  readonly reason: string;
  readonly message: string;
}

/** A condition that was checked; a chain of them ends with the first that is not met. */
export interface Check {
  readonly isMet: boolean;
  /** Without a full stop. */
  readonly message: string;
}

/** Why something is not there: `message` is that of the last check, the one that is not met. */
export interface Why extends Trouble {
  readonly checks: readonly Check[];
}
