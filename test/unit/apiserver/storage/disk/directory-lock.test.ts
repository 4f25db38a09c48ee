import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { lockDirectory } from '../../../../../src/apiserver/storage/disk/directory-lock.ts';
import { StorageLockedError } from '../../../../../src/apiserver/storage/disk/directory-lock.ts';
import { openStore, temporaryDirectories } from './store-fixture.ts';

const newDirectory = temporaryDirectories();
const lockModule = new URL('../../../../../src/apiserver/storage/disk/directory-lock.ts', import.meta.url);

describe('the lock of a data directory', () => {
  it('keeps a second store in the same process out, until the first is closed', async () => {
    const directory = newDirectory();
    const first = await openStore(directory);
    await expect(openStore(directory)).rejects.toThrow(`${directory} is in use by process ${process.pid}`);
    await first.storage.close();
    const second = await openStore(directory);
    await second.storage.close();
  });

  it('keeps other processes out and dies with its holder', async () => {
    const directory = newDirectory();
    fs.mkdirSync(directory);
    const script = `
      const { lockDirectory } = await import(${JSON.stringify(lockModule.href)});
      await lockDirectory(${JSON.stringify(directory)});
      console.log('locked');
      setInterval(() => {}, 1000);`;
    const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      await once(holder.stdout, 'data');
      await expect(lockDirectory(directory)).rejects.toThrow(StorageLockedError);
      await expect(openStore(directory)).rejects.toThrow(`in use by process ${holder.pid}`);
    } finally {
      holder.kill('SIGKILL');
    }
    await once(holder, 'exit');
    const unlock = await lockDirectory(directory);
    unlock();
  });
});
