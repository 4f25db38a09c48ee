import { readDifferences, viewOf } from './text-differences.ts';
import { TextSamples } from './text-samples.ts';

/**
 * Bytes of a block: so few that what is in it moves in a moment, and that malloc takes it from its heap. What is larger
 * has pages of its own there, while what V8's compilers gave back lies idle in the heap.
 */
const BLOCK_BYTES = 64 * 1024;
/** Share of a full block that must be in use; below it what is left moves, so at most a fifth of the memory is waste. */
const LEAST_USED = 0.8;
/** Bytes beyond which there is a block for it alone: one that was full of smaller ones is never below that share. */
const LARGE = BLOCK_BYTES / 8;
/** Bytes of a text beyond which it goes to a block at once, and whole. */
const LONG = 32 * 1024;
/** So many texts are new. What is written is answered and told to watchers at once, and often replaced soon. */
const NEW = 128;

/** A piece of memory with texts one behind the other. */
interface Block {
  readonly bytes: Buffer;
  /** Where the next text goes. */
  end: number;
  /** Bytes that texts in use take. */
  used: number;
  /** Those texts, in no order. */
  texts: KeptText[];
}

/** A text, in UTF-8 where bytes are counted. It can be read as long as somebody has it, released or not. */
export class KeptText {
  /** The block that it is in; as long as it is new, itself. */
  home: Block | string;
  /** Its place in the block, or among the new ones. */
  at: number;
  /** Bytes. */
  readonly length: number;
  /** Bytes that it takes in the block. */
  taken = 0;
  /** What is in the block are differences from this; undefined: it is there whole. */
  sample: Buffer | undefined = undefined;

  constructor(home: Block | string, at: number, length: number) {
    this.home = home;
    this.at = at;
    this.length = length;
  }

  toString(): string {
    const { home, sample, at } = this;
    if (typeof home === 'string') return home;
    const stop = at + this.taken;
    if (sample === undefined) return home.bytes.toString('utf8', at, stop);
    return reading.toString('utf8', 0, readDifferences(sample, home.bytes, at, stop, reading, 0));
  }

  /** Copies all behind the first `skip` bytes, which are ASCII, to `target`, where there is room; returns where that ends. */
  copy(target: Buffer, targetStart: number, skip = 0): number {
    const { home, sample, at } = this;
    if (typeof home === 'string') return targetStart + target.write(home.slice(skip), targetStart);
    const stop = at + this.taken;
    if (sample === undefined) return targetStart + home.bytes.copy(target, targetStart, at + skip, stop);
    if (skip === 0) return readDifferences(sample, home.bytes, at, stop, target, targetStart);
    const end = readDifferences(sample, home.bytes, at, stop, reading, 0);
    return targetStart + reading.copy(target, targetStart, skip, end);
  }
}

/** Where a text is put together before its end is copied or made a string. */
const reading = Buffer.allocUnsafeSlow(LONG);

/**
 * Texts outside of V8's heap. There each is an object among others: when one goes it leaves a hole between those that
 * stay, and V8 closes holes only on pages that are nearly empty, so that a heap of texts that come and go grows to twice
 * of what is in it. Here they lie in blocks, and a block that is not full enough any more is given up.
 *
 * Most are there as differences from another text of their kind, a fifth of what they are. Those that came last are
 * still strings: they are read at once, and one that goes soon was never written.
 */
export class TextBlocks {
  private current = newBlock(0);
  private readonly samples = new TextSamples(LONG);
  /** The texts that came last, and their kinds. The next one takes the place of the oldest. */
  private readonly newest: (KeptText | undefined)[] = [];
  private readonly kinds: string[] = [];
  private oldest = 0;
  /** Where a new text is written on its way to a block. */
  private readonly writing = Buffer.allocUnsafeSlow(LONG);
  private readonly writingView = viewOf(this.writing);
  private present = 0;

  /** How many texts are in use. */
  get count(): number {
    return this.present;
  }

  /** Takes a text in. @param kind texts of one kind are alike. */
  add(text: string, kind: string): KeptText {
    // To be counted makes it one string: put together of hundreds of parts, it would take ten times as much.
    const length = Buffer.byteLength(text);
    if (length > LONG) return this.addBytes(Buffer.from(text));
    const at = this.oldest;
    const settled = this.newest[at];
    if (settled !== undefined) this.settle(settled, this.kinds[at] ?? '');
    const kept = new KeptText(text, at, length);
    this.present++;
    this.newest[at] = kept;
    this.kinds[at] = kind;
    this.oldest = (at + 1) % NEW;
    return kept;
  }

  /** Takes a text in that is in UTF-8 already. It stays whole. */
  addBytes(bytes: Uint8Array): KeptText {
    this.present++;
    const block = this.blockFor(bytes.length);
    const text = new KeptText(block, block.end, bytes.length);
    block.bytes.set(bytes, block.end);
    enter(block, text, bytes.length);
    return text;
  }

  /** Counts a text as no longer in use. Who still has it can read it. */
  release(text: KeptText): void {
    this.present--;
    const block = text.home;
    if (typeof block === 'string') {
      this.newest[text.at] = undefined;
      return;
    }
    const index = block.texts.indexOf(text);
    const last = block.texts.pop();
    if (last !== undefined && last !== text) block.texts[index] = last;
    block.used -= text.taken;
    if (block !== this.current) this.clearIfSparse(block);
  }

  /** Brings a new text into a block. */
  private settle(text: KeptText, kind: string): void {
    const { writing } = this;
    const length = writing.write(text.toString());
    const told = this.samples.tell(kind, writing, this.writingView, length);
    const taken = told?.length ?? length;
    text.sample = told?.sample;
    const block = this.blockFor(taken);
    (told === undefined ? writing : this.samples.differences).copy(block.bytes, block.end, 0, taken);
    enter(block, text, taken);
  }

  private get room(): number {
    return this.current.bytes.length - this.current.end;
  }

  /** A block with room for so many bytes. */
  private blockFor(length: number): Block {
    if (length <= this.room) return this.current;
    if (length > LARGE) return newBlock(length);
    const full = this.current;
    this.current = newBlock(BLOCK_BYTES);
    this.clearIfSparse(full);
    return length <= this.room ? this.current : this.blockFor(length);
  }

  /** Moves what is left in a block that is not full enough. The block goes when nobody reads a text from it. */
  private clearIfSparse(block: Block): void {
    if (block.used >= block.bytes.length * LEAST_USED) return;
    const { texts } = block;
    block.texts = [];
    for (const text of texts) {
      const { at, taken } = text;
      const target = this.blockFor(taken);
      block.bytes.copy(target.bytes, target.end, at, at + taken);
      enter(target, text, taken);
    }
  }
}

/** Says that the next `taken` bytes of a block are a text's. */
function enter(block: Block, text: KeptText, taken: number): void {
  text.home = block;
  text.at = block.end;
  text.taken = taken;
  block.end += taken;
  block.used += taken;
  block.texts.push(text);
}

function newBlock(size: number): Block {
  return { bytes: Buffer.allocUnsafeSlow(size), end: 0, used: 0, texts: [] };
}
