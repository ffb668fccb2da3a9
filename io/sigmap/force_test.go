package sigmap

import "testing"

func TestMessageHasAForceIfOneOfItsFieldsHas(t *testing.T) {
	m := bound(t)
	for i := range m.Tx {
		tx := &m.Tx[i]
		if tx.HasForce() {
			t.Errorf("%s has a force, and none of its fields", tx.Name)
		}
		for j := range tx.Fields {
			for _, f := range []Force{ForceValue, ForceOnes} {
				tx.Fields[j].Force = f
				if !tx.HasForce() {
					t.Errorf("%s has no force, and its field %s has", tx.Name, tx.Fields[j].Name)
				}
			}
			tx.Fields[j].Force = NoForce
		}
	}
}
