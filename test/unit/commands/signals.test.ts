import { expect, test } from 'vitest';
import { endInReverse } from '../../../src/commands/signals.ts';

test('what was started is ended in reverse, and all of it where one fails', async () => {
  const ended: string[] = [];
  const end = (name: string, error?: Error) => async (): Promise<void> => {
    await Promise.resolve();
    ended.push(name);
    if (error !== undefined) throw error;
  };
  const failing = [
    end('server'),
    end('kubeconfig', new Error('kubeconfig')),
    end('clients', new Error('clients')),
  ];
  await expect(endInReverse(failing)).rejects.toThrow('clients');
  expect(ended).toEqual(['clients', 'kubeconfig', 'server']);
  await expect(endInReverse([])).resolves.toBeUndefined();
});
