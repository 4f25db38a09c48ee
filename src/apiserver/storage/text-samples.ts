import { Sample, writeDifferences } from './text-differences.ts';

/** A text that differs from the sample in this share of it is told well enough. */
const FAIR_SHARE = 1 / 4;
/** Differences that take more than this share of a text are not worth the time to read them. */
const LARGEST_SHARE = 7 / 8;
/** A sample is replaced when what it did not save would fill so many of the next. */
const WORTH = 8;
/** Kinds with a sample, before the oldest loses its own. Definitions come and go, with names that are never used again. */
const MOST_KINDS = 512;

/** What the texts of one kind are told by. */
interface Choice {
  sample: Sample | undefined;
  /** Bytes beyond a fair share that texts took since the sample was taken. */
  excess: number;
}

/**
 * A sample for each kind of texts, of which the others are kept as differences. When it is not like them any more (a Pod
 * that runs says more than one that was made) one of them takes its place. The old sample stays in memory as long as
 * texts are told by it, so none is replaced before it cost much more than that; kinds of which there are few get none.
 */
export class TextSamples {
  /** The differences that were written last are at its front. */
  readonly differences: Buffer;
  private readonly choices = new Map<string, Choice>();

  /** @param largest bytes of a text; at most 65,534. */
  constructor(largest: number) {
    this.differences = Buffer.allocUnsafeSlow(largest);
  }

  /**
   * Writes the first `length` bytes of `text` as {@link differences} from what the kind has for a sample.
   *
   * @param view of `text`.
   * @returns the sample, and how many bytes that took; undefined when the text is better kept whole.
   */
  tell(
    kind: string,
    text: Buffer,
    view: DataView,
    length: number,
  ): { sample: Buffer; length: number } | undefined {
    const choice = this.choices.get(kind) ?? this.admit(kind);
    const { sample } = choice;
    const most = length * LARGEST_SHARE;
    const told =
      sample === undefined ? undefined : writeDifferences(sample, text, view, length, this.differences, most);
    choice.excess += Math.max(0, (told ?? length) - length * FAIR_SHARE);
    if (choice.excess > length * WORTH) {
      choice.sample = new Sample(Buffer.from(text.subarray(0, length)));
      choice.excess = 0;
    }
    return sample === undefined || told === undefined ? undefined : { sample: sample.bytes, length: told };
  }

  private admit(kind: string): Choice {
    const choice: Choice = { sample: undefined, excess: 0 };
    this.choices.set(kind, choice);
    const [oldest] = this.choices.keys();
    if (oldest !== undefined && this.choices.size > MOST_KINDS) this.choices.delete(oldest);
    return choice;
  }
}
