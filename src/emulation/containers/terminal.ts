import { closeSync, constants, openSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import { load } from 'koffi';
import type { TerminalSize } from '../../controllers/kubelet/container-runtime.ts';

/** A pseudo terminal (pty(7)): a program has one end as its standard streams, and the other one is read and written. */
export interface Terminal {
  /** The program's end; to be closed here once the program has it. */
  readonly programEnd: number;
  /** Our end, both ways. Ends when no program has the other end open. */
  readonly stream: ReadStream;
  readonly resize: (size: TerminalSize) => void;
}

const ioctl = load(null).func('int ioctl(int descriptor, unsigned long request, void *argument)');

/** Requests of asm-generic/ioctls.h, which x86 and ARM share. */
const getNumber = 0x80045430; // TIOCGPTN
const setLock = 0x40045431; // TIOCSPTLCK
const setSize = 0x5414; // TIOCSWINSZ

/** Opens a terminal. @throws the system's error where there is none left. */
export function openTerminal(): Terminal {
  const flags = constants.O_RDWR | constants.O_NOCTTY;
  const master = openSync('/dev/ptmx', flags);
  try {
    const number = Buffer.alloc(4);
    if (ioctl(master, setLock, Buffer.alloc(4)) !== 0 || ioctl(master, getNumber, number) !== 0) {
      throw new Error('the terminal cannot be opened');
    }
    const programEnd = openSync(`/dev/pts/${number.readInt32LE()}`, flags);
    return {
      programEnd,
      stream: new ReadStream(master),
      resize: ({ columns, rows }) => {
        const size = Buffer.from(Uint16Array.from([rows, columns, 0, 0]).buffer);
        void ioctl(master, setSize, size);
      },
    };
  } catch (error) {
    closeSync(master);
    throw error;
  }
}
