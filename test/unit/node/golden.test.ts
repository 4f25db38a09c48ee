import { readFile, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { goldenCases, goldenFile, playGolden } from '../../support/golden-cases.ts';

/** `GOLDEN=write` writes the files anew: read the difference, and let a real nft confirm it (`test/network/nftables`). */
const writes = process.env['GOLDEN'] === 'write';

describe('what agents write into the kernel', () => {
  it.each(goldenCases)('$folder: $name', async (golden) => {
    const { text } = await playGolden(golden);
    const file = goldenFile(golden, '.nft');
    if (writes) await writeFile(file, text);
    expect(text).toBe(await readFile(file, 'utf8'));
  });
});
