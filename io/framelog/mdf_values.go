package framelog

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Limits of values over time.
const (
	mdfMaxColumns  = 1 << 14 // channels of a group
	mdfMaxGrowth   = 64      // records may be so many times longer than the file: deflated, or linked repeatedly
	mdfSmallGrowth = 1 << 20 // records that any file may have, bytes
)

// MDFColumn is a channel of a group of values over time.
type MDFColumn struct {
	Name, Unit string
	field      mdfField
}

// ReadMDFValues reads the channels of the first group of an MDF4 file that has a name. choose gets the channels
// except that of time, and returns the indices of those to read. row gets the time, s, and their values at each
// record; it must not keep the slice. The group must be alone in its data group, as those of lockstep's export.
// name is that of the file, for errors.
func ReadMDFValues(name string, in Input, group string, choose func([]MDFColumn) ([]int, error), row func(time float64, values []float64) error) error {
	m := &mdfInput{name: name, in: in}
	hd, err := m.head()
	if err != nil {
		return err
	}
	for at := hd.links[0]; at != 0; {
		dg, err := m.block(at, "DG", 3)
		if err != nil {
			return err
		}
		found, err := m.readValues(&dg, group, choose, row)
		if found || err != nil {
			return err
		}
		at = dg.links[0]
	}
	return fmt.Errorf("%s: framelog: the MDF file has no group of channels %q: "+
		"only files of lockstep export have signals that can be read", name, group)
}

// readValues reads the data group dg if its channel group has the name.
func (m *mdfInput) readValues(dg *mdfNode, group string, choose func([]MDFColumn) ([]int, error), row func(float64, []float64) error) (found bool, err error) {
	if dg.links[1] == 0 {
		return false, nil
	}
	cg, err := m.block(dg.links[1], "CG", 3)
	if err != nil {
		return false, err
	}
	if name, err := m.text(cg.links[2]); err != nil || name != group {
		return false, err
	}
	if len(cg.data) < 32 || len(dg.data) < 1 || dg.data[0] != 0 || cg.links[0] != 0 || cg.data[16]&1 != 0 {
		return true, m.errorf(cg.at, "the group %q has records of several forms, or of variable length", group)
	}
	size := uint64(binary.LittleEndian.Uint32(cg.data[24:])) + uint64(binary.LittleEndian.Uint32(cg.data[28:]))
	if size == 0 || size > mdfMaxRecord {
		return true, m.errorf(cg.at, "records of %d bytes; at most %d are possible", size, mdfMaxRecord)
	}
	time, columns, err := m.columns(cg.links[1], int(size))
	if err != nil {
		return true, err
	}
	if time.bits == 0 {
		return true, m.errorf(cg.at, "the group %q has no channel of time", group)
	}
	chosen, err := choose(columns)
	if err != nil {
		return true, err
	}

	m.blocks = 0 // the blocks of data are counted anew
	data, record, values := m.stream(dg.links[2]), make([]byte, size), make([]float64, len(chosen))
	for left := mdfSmallGrowth + mdfMaxGrowth*m.in.Size(); ; left -= int64(size) {
		if left < 0 {
			return true, m.errorf(dg.at, "the records of group %q are more than %d times longer than the file", group, mdfMaxGrowth)
		}
		switch _, err := io.ReadFull(data, record); {
		case err == io.EOF:
			return true, nil
		case err != nil:
			return true, m.errorf(dg.at, "the records of group %q: %w", group, cutShort(err))
		}
		for i, c := range chosen {
			values[i] = columns[c].field.value(record)
		}
		if err := row(time.value(record), values); err != nil {
			return true, m.errorf(dg.at, "group %q: %w", group, err)
		}
	}
}

// columns returns the channel of time and the other channels that are numbers.
func (m *mdfInput) columns(at int64, size int) (time mdfField, list []MDFColumn, err error) {
	for at != 0 {
		cn, err := m.block(at, "CN", 8)
		if err != nil {
			return time, nil, err
		}
		if len(cn.data) < 16 {
			return time, nil, m.errorf(at, "block CN is too short")
		}
		c := MDFColumn{}
		if c.field, err = m.field(size, &cn); err != nil {
			return time, nil, err
		}
		if c.Name, err = m.text(cn.links[2]); err != nil {
			return time, nil, err
		}
		if c.Unit, err = m.text(cn.links[6]); err != nil {
			return time, nil, err
		}
		at = cn.links[0]
		switch isNumber := c.field.kind <= 5 && c.field.bits > 0 && c.field.bits <= 64 && c.field.shift+c.field.bits <= 64 &&
			(c.field.kind < 4 || c.field.bits == 32 || c.field.bits == 64) && cn.data[0] != 1; {
		case !isNumber:
		case cn.data[0] == 2 && cn.data[1] == 1:
			time = c.field
		case len(list) == mdfMaxColumns:
			return time, nil, m.errorf(cn.at, "the group has more than %d channels", mdfMaxColumns)
		default:
			list = append(list, c)
		}
	}
	return time, list, nil
}
