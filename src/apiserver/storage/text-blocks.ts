/** Bytes of a block: large enough that malloc gives each its own pages, small enough to move what is in it in a moment. */
const BLOCK_BYTES = 256 * 1024;
/** Share of a full block that must be in use; below it what is left moves, so at most a fifth of the memory is waste. */
const LEAST_USED = 0.8;
/** Bytes beyond which a text has a block of its own: one that was full of smaller ones is never below that share. */
const LARGE = BLOCK_BYTES / 8;

/** A piece of memory with texts one behind the other. */
interface Block {
  readonly bytes: Buffer;
  /** Where the next text goes. */
  end: number;
  /** Bytes of the texts that are in use. */
  used: number;
  /** Those texts, in no order. */
  texts: KeptText[];
}

/** A text in a block, in UTF-8. It can be read as long as somebody has it, released or not. */
export class KeptText {
  block: Block;
  at: number;
  /** Bytes. */
  readonly length: number;

  constructor(block: Block, at: number, length: number) {
    this.block = block;
    this.at = at;
    this.length = length;
  }
  toString(): string {
    return this.block.bytes.toString('utf8', this.at, this.at + this.length);
  }
  /** Copies all behind the first `skip` bytes to `target`, where there is room for it; returns where that ends. */
  copy(target: Buffer, targetStart: number, skip = 0): number {
    return targetStart + this.block.bytes.copy(target, targetStart, this.at + skip, this.at + this.length);
  }
}

/**
 * Texts outside of V8's heap. There each is an object among others: when one goes it leaves a hole between those that
 * stay, and V8 closes holes only on pages that are nearly empty, so that a heap of texts that come and go grows to twice
 * of what is in it. Here they lie in blocks, and a block that is not full enough any more is given up.
 */
export class TextBlocks {
  private current = newBlock(0);
  private bytesInUse = 0;

  /** Bytes of the texts that are in use. */
  get used(): number {
    return this.bytesInUse;
  }

  /** Takes a text in. */
  add(text: string): KeptText {
    // A unit of UTF-16 takes at most three bytes; where that fits they need no counting.
    const most = text.length * 3;
    const block = this.blockFor(most <= this.room ? most : Buffer.byteLength(text));
    return this.place(block, block.bytes.write(text, block.end));
  }

  /** Takes a text in that is in UTF-8 already. */
  addBytes(bytes: Uint8Array): KeptText {
    const block = this.blockFor(bytes.length);
    block.bytes.set(bytes, block.end);
    return this.place(block, bytes.length);
  }

  /** Counts a text as no longer in use. Who still has it can read it. */
  release(text: KeptText): void {
    const { block } = text;
    const index = block.texts.indexOf(text);
    const last = block.texts.pop();
    if (last !== undefined && last !== text) block.texts[index] = last;
    block.used -= text.length;
    this.bytesInUse -= text.length;
    if (block !== this.current) this.clearIfSparse(block);
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

  private place(block: Block, length: number): KeptText {
    const text = new KeptText(block, block.end, length);
    block.end += length;
    block.used += length;
    block.texts.push(text);
    this.bytesInUse += length;
    return text;
  }

  /** Moves what is left in a block that is not full enough. The block goes when nobody reads a text from it. */
  private clearIfSparse(block: Block): void {
    if (block.used >= block.bytes.length * LEAST_USED) return;
    const { texts } = block;
    block.texts = [];
    for (const text of texts) {
      const target = this.blockFor(text.length);
      const { end } = target;
      target.end = text.copy(target.bytes, end);
      target.used += text.length;
      target.texts.push(text);
      text.block = target;
      text.at = end;
    }
  }
}

function newBlock(size: number): Block {
  return { bytes: Buffer.allocUnsafeSlow(size), end: 0, used: 0, texts: [] };
}
